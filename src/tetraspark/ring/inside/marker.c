/*
 * Marker: tags the RDMA frames of one device by the IPv4 address they go to.
 *
 *   marker --device rocep1s0f0 --mark 10.10.1.11=0x88b5 [--mark ADDRESS=0xTAG ...]
 *
 * For each mark one rule in the device's RDMA transmit table: EtherType IPv4 and that destination,
 * nothing else looked at; the action writes the EtherType. Only the Ethernet header changes, which
 * the frame's own checksums do not cover. The rules belong to this process: they are gone when it
 * ends, however it ends. "ready" on stdout says that all of them are there.
 *
 * Not yet run on a ConnectX: the calls and the bytes given to them are tested against a stand-in
 * of libmlx5.
 *
 * Exit code 0 after SIGTERM or SIGINT, 1 when the device refuses, 2 for bad arguments, 3 when
 * another marker has the device.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_MARKS 8
#define IPV4 0x0800

/* fte_match_set_lyr_2_4, the outer headers of a match in the device's format, and its fields. */
#define MATCH_BYTES 64
#define MATCH_ETHERTYPE 6
#define MATCH_DESTINATION 60
#define MATCH_OUTER_HEADERS 1

/* set_action_in: action type, field, first bit and number of bits; then the value. */
#define ACTION_SET 1u
#define FIELD_OUT_ETHERTYPE 3u
#define ETHERTYPE_BITS 16u

struct mark {
	struct in_addr destination;
	uint16_t tag;
	struct ibv_flow_action *action;
	struct ibv_flow *flow;
};

struct match {
	size_t size;
	uint64_t bytes[MATCH_BYTES / 8];
};

static int usage(const char *what, const char *word)
{
	fprintf(stderr, "marker: %s: %s; wanted: --device NAME --mark ADDRESS=0xTAG ...\n", what, word);
	return 2;
}

static int parse_mark(char *word, struct mark *mark)
{
	char *equals = strchr(word, '='), *end;
	unsigned long tag;

	if (!equals || strncmp(equals, "=0x", 3))
		return -1;
	*equals = '\0';
	errno = 0;
	tag = strtoul(equals + 3, &end, 16);
	if (errno || *end || end == equals + 3 || tag <= IPV4 || tag > 0xffff)
		return -1;
	mark->tag = tag;
	return inet_pton(AF_INET, word, &mark->destination) == 1 ? 0 : -1;
}

static void fill_match(struct match *match, uint16_t ethertype, uint32_t destination)
{
	uint8_t *bytes = (uint8_t *)match->bytes;

	memset(match, 0, sizeof *match);
	match->size = MATCH_BYTES;
	ethertype = htons(ethertype);
	memcpy(bytes + MATCH_ETHERTYPE, &ethertype, sizeof ethertype);
	memcpy(bytes + MATCH_DESTINATION, &destination, sizeof destination);
}

static uint64_t set_ethertype(uint16_t tag)
{
	uint32_t words[2];
	uint64_t action;

	words[0] = htonl(ACTION_SET << 28 | FIELD_OUT_ETHERTYPE << 16 | ETHERTYPE_BITS);
	words[1] = htonl(tag);
	memcpy(&action, words, sizeof action);
	return action;
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_context *context = NULL;
	struct ibv_device **devices = ibv_get_device_list(NULL);
	int i;

	for (i = 0; devices && devices[i]; i++)
		if (!strcmp(ibv_get_device_name(devices[i]), name)) {
			if (!mlx5dv_is_supported(devices[i])) {
				fprintf(stderr, "marker: %s is no mlx5 device\n", name);
				break;
			}
			context = ibv_open_device(devices[i]);
			if (!context)
				fprintf(stderr, "marker: %s: %s\n", name, strerror(errno));
			break;
		}
	if (!devices || !devices[i])
		fprintf(stderr, "marker: there is no RDMA device %s\n", name);
	if (devices)
		ibv_free_device_list(devices);
	return context;
}

/* An abstract socket is bound once, and goes with the process: no crash leaves a lock behind. */
static int lock_device(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
			      "tetraspark-marker-%s", name);

	if (length >= (int)sizeof address.sun_path - 1)
		errno = ENAMETOOLONG;
	else if (file >= 0 && !bind(file, (struct sockaddr *)&address,
				    offsetof(struct sockaddr_un, sun_path) + 1 + length))
		return 0;
	if (errno == EADDRINUSE)
		fprintf(stderr, "marker: another marker has %s\n", name);
	else
		fprintf(stderr, "marker: no lock for %s: %s\n", name, strerror(errno));
	return -1;
}

static struct mlx5dv_flow_matcher *create_matcher(struct ibv_context *context)
{
	struct match mask;
	struct mlx5dv_flow_matcher_attr attributes = {
		.type = IBV_FLOW_ATTR_NORMAL,
		.match_criteria_enable = MATCH_OUTER_HEADERS,
		.match_mask = (struct mlx5dv_flow_match_parameters *)&mask,
		.comp_mask = MLX5DV_FLOW_MATCHER_MASK_FT_TYPE,
		.ft_type = MLX5DV_FLOW_TABLE_TYPE_RDMA_TX,
	};

	fill_match(&mask, 0xffff, 0xffffffff);
	return mlx5dv_create_flow_matcher(context, &attributes);
}

static int add_rule(struct ibv_context *context, struct mlx5dv_flow_matcher *matcher,
		    struct mark *mark)
{
	struct mlx5dv_flow_action_attr attributes = {.type = MLX5DV_FLOW_ACTION_IBV_FLOW_ACTION};
	uint64_t action = set_ethertype(mark->tag);
	struct match value;

	mark->action = mlx5dv_create_flow_action_modify_header(context, sizeof action, &action,
							       MLX5DV_FLOW_TABLE_TYPE_RDMA_TX);
	if (!mark->action)
		return -1;
	fill_match(&value, IPV4, mark->destination.s_addr);
	attributes.action = mark->action;
	mark->flow = mlx5dv_create_flow(matcher, (struct mlx5dv_flow_match_parameters *)&value, 1,
					&attributes);
	return mark->flow ? 0 : -1;
}

static int remove_rule(struct mark *mark)
{
	int failed = mark->flow && ibv_destroy_flow(mark->flow);

	return (mark->action && ibv_destroy_flow_action(mark->action)) || failed;
}

static int run(struct ibv_context *context, struct mark *marks, int count, const sigset_t *ends)
{
	struct mlx5dv_flow_matcher *matcher = create_matcher(context);
	int i, number, failed = !matcher;

	for (i = 0; i < count && !failed; i++)
		failed = add_rule(context, matcher, &marks[i]);
	if (failed) {
		fprintf(stderr, "marker: the device takes no such rule: %s\n", strerror(errno));
	} else {
		puts("ready");
		fflush(stdout);
		sigwait(ends, &number);
	}
	for (i = count; i-- > 0;)
		failed |= remove_rule(&marks[i]);
	if (matcher)
		failed |= mlx5dv_destroy_flow_matcher(matcher);
	return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct mark marks[MAX_MARKS] = {0};
	const char *device = NULL;
	struct ibv_context *context;
	int i, count = 0, code;
	sigset_t ends;

	for (i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--device") && !device)
			device = argv[i + 1];
		else if (strcmp(argv[i], "--mark"))
			return usage("not an option, or twice", argv[i]);
		else if (count == MAX_MARKS)
			return usage("too many marks", argv[i + 1]);
		else {
			/* What `ps` shows stays as it was given. */
			char *word = strdup(argv[i + 1]);

			if (!word || parse_mark(word, &marks[count++]))
				return usage("not a mark", argv[i + 1]);
			free(word);
		}
	}
	if (i != argc)
		return usage("no value", argv[i]);
	if (!device || !*device || strchr(device, '/') || !count)
		return usage("too little", "no device or no mark");
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (lock_device(device))
		return 3;
	context = open_device(device);
	if (!context)
		return 1;
	code = run(context, marks, count, &ends);
	return ibv_close_device(context) || code;
}
