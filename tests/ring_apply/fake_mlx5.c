/*
 * Stand-in of libibverbs and libmlx5 for the marker: two devices, and every call with the bytes
 * given to it as a line in the file that $MLX5_CALLS names. $MLX5_FAULT names a call that fails.
 */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef ibv_get_device_list

static struct ibv_device cards[5];
static struct ibv_device *devices[6];
static struct verbs_context card;
static int handles;

static void say(const char *form, ...)
{
	const char *path = getenv("MLX5_CALLS");
	FILE *file = path ? fopen(path, "a") : NULL;
	va_list rest;

	if (!file)
		return;
	va_start(rest, form);
	vfprintf(file, form, rest);
	va_end(rest);
	fclose(file);
}

static void hex(char *text, const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		sprintf(text + 2 * i, "%02x", ((const unsigned char *)bytes)[i]);
}

static void *made(const char *call)
{
	const char *fault = getenv("MLX5_FAULT");

	if (fault && !strcmp(fault, call)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	handles++;
	return calloc(1, 64);
}

static int freed(const char *call, void *handle)
{
	say("%s left %d\n", call, --handles);
	free(handle);
	return 0;
}

static int destroy_flow(struct ibv_flow *flow) { return freed("destroy flow", flow); }
static int destroy_action(struct ibv_flow_action *one) { return freed("destroy action", one); }

struct ibv_device **ibv_get_device_list(int *count)
{
	const char *names[] = {"rocep1s0f0", "rocep1s0f1", "roceP2p1s0f0", "roceP2p1s0f1", "rxe0"};

	for (int i = 0; i < 5; i++) {
		strcpy(cards[i].name, names[i]);
		devices[i] = &cards[i];
	}
	if (count)
		*count = 5;
	return devices;
}

void ibv_free_device_list(struct ibv_device **list) { (void)list; }
const char *ibv_get_device_name(struct ibv_device *device) { return device->name; }
bool mlx5dv_is_supported(struct ibv_device *device) { return strcmp(device->name, "rxe0"); }

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	say("open %s\n", device->name);
	card.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	card.sz = sizeof card;
	card.ibv_destroy_flow = destroy_flow;
	card.destroy_flow_action = destroy_action;
	return &card.context;
}

int ibv_close_device(struct ibv_context *opened)
{
	say("close left %d\n", handles);
	return opened != &card.context;
}

struct mlx5dv_flow_matcher *mlx5dv_create_flow_matcher(struct ibv_context *opened,
						       struct mlx5dv_flow_matcher_attr *attr)
{
	char text[1024];

	(void)opened;
	hex(text, attr->match_mask->match_buf, attr->match_mask->match_sz);
	say("matcher type %d priority %d criteria %d comp_mask %d table %d mask %s\n", attr->type,
	    attr->priority, attr->match_criteria_enable, (int)attr->comp_mask, attr->ft_type, text);
	return made("matcher");
}

struct ibv_flow_action *mlx5dv_create_flow_action_modify_header(struct ibv_context *opened,
								 size_t size, uint64_t actions[],
								 enum mlx5dv_flow_table_type table)
{
	char text[64];
	struct ibv_flow_action *action;

	hex(text, actions, size);
	say("action table %d bytes %s\n", table, text);
	action = made("action");
	if (action)
		action->context = opened;
	return action;
}

struct ibv_flow *mlx5dv_create_flow(struct mlx5dv_flow_matcher *matcher,
				    struct mlx5dv_flow_match_parameters *value, size_t count,
				    struct mlx5dv_flow_action_attr attributes[])
{
	char text[1024];
	struct ibv_flow *flow;

	(void)matcher;
	hex(text, value->match_buf, value->match_sz);
	say("flow actions %d type %d value %s\n", (int)count, attributes[0].type, text);
	flow = made("flow");
	if (flow)
		flow->context = &card.context;
	return flow;
}

int mlx5dv_destroy_flow_matcher(struct mlx5dv_flow_matcher *m) { return freed("destroy matcher", m); }
