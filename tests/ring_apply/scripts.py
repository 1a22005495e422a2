"""Shell scripts of the machines: how a node is set up, emptied, and looked at."""

from tests.ring.sparks import netdev, rdma

DEVICES = [netdev(cage, half) for cage in (0, 1) for half in (0, 1)]
RDMA = [rdma(cage, half) for cage in (0, 1) for half in (0, 1)]

SET_UP = f"""
set -e
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib
mkdir /run/etc /run/work
mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/etc,workdir=/run/work /etc
mount -t tmpfs tmpfs /sys/class
mount -t tmpfs tmpfs /dev
for device in null:3 zero:5 random:8 urandom:9; do
    mknod -m 666 "/dev/${{device%:*}}" c 1 "${{device#*:}}"
done
mkdir /dev/infiniband
: >/dev/infiniband/uverbs0
for card in {" ".join(RDMA)}; do
    mkdir -p "/sys/class/infiniband/$card/ports/1/hw_counters"
    echo 28.45.4028 >"/sys/class/infiniband/$card/fw_ver"
    echo 0 >"/sys/class/infiniband/$card/ports/1/hw_counters/rx_icrc_encapsulated"
done
ip link add enP7s7 type veth peer name lan
ip addr add "$1/24" dev enP7s7
ip link set enP7s7 up
ip link set lan up
"""
# All but the first process and its child go; what the kernel and the store have goes too.
RESET = """
for process in /proc/[0-9]*; do
    read -r name <$process/comm
    case "$name" in tini | sleep | sh) ;; *) kill -9 ${process#/proc/} ;; esac
done
rm -rf /var/lib/tetraspark /run/tc.* /run/offload.* /run/devlink.* /run/docker /run/systemctl
rm -rf /etc/netplan /etc/NetworkManager /run/forward /etc/systemd/system/tetraspark*
rm -rf /etc/systemd/system/multi-user.target.d/tetraspark*
rm -rf /sys/class/infiniband/*/ports/1/gid*
mkdir -p /etc/netplan /etc/NetworkManager/system-connections
printf %s "$1" | ip -force -batch - 2>/dev/null
printf %s "$2" | /usr/sbin/tc -force -batch - 2>/dev/null
true
"""
# What OpenSSH does with `ssh OPTIONS -- HOST COMMAND`, on nodes that no network reaches.
SSH = """
case " $* " in *" -O exit "*) exit 0 ;; esac
while [ "$1" != -- ]; do shift; done
if [ -e "$hosts/$2.down" ]; then
    echo "ssh: connect to host $2 port 22: No route to host" >&2
    exit 255
fi
exec "$hosts/$2" "$3"
"""
STATE = """
ip -j addr; echo; ip -j neigh; echo; ip -j -4 route show table all; echo; ip -j rule; echo
/usr/sbin/tc -j qdisc; echo
{ cat /run/tc.json || echo "[]"; } 2>/dev/null; echo
grep -H . /run/offload.* /run/devlink.*.[fh]* 2>/dev/null
find /etc/netplan /etc/NetworkManager /etc/systemd -type f | sort | xargs -r sha256sum
"""
