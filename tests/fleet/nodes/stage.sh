# Process 1 of a node, in its new namespaces but still on this machine's root: builds the node's
# root (a copy-on-write view of the machine's, on a disk of limited size), moves into it, and
# hands over to tini. The folders below are the node's own; the rest of the machine's root is seen.
set -eu
disk=$1 files=$2 host=$3 cgroups=$4 shared=$5
mount --make-rprivate /
store=$(dirname "$disk")/mnt root=$(dirname "$disk")/root
mkdir -p "$store" "$root"
mount -o loop "$disk" "$store"
mkdir -p "$store/upper" "$store/work"
mount -t overlay overlay -o "lowerdir=/,upperdir=$store/upper,workdir=$store/work" "$root"
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
mount -t sysfs -o nosuid,nodev,noexec sysfs "$root/sys"
# An RDMA device, as sysfs would show one.
mount -t overlay overlay -o "lowerdir=$(dirname "$disk")/class:$root/sys/class" "$root/sys/class"
mount -t tmpfs -o nosuid,mode=755 tmpfs "$root/dev"
for device in null:3 zero:5 full:7 random:8 urandom:9; do
    mknod -m 666 "$root/dev/${device%:*}" c 1 "${device#*:}"
done
mknod -m 666 "$root/dev/tty" c 5 0
# It satisfies `docker run --device`, and no driver.
mkdir "$root/dev/infiniband"
mknod -m 666 "$root/dev/infiniband/uverbs0" c 1 3
mkdir "$root/dev/pts" "$root/dev/shm" "$root/dev/mqueue"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o nosuid,nodev,mode=1777 tmpfs "$root/dev/shm"
mount -t mqueue mqueue "$root/dev/mqueue"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
ln -s /proc/self/fd/0 "$root/dev/stdin"
ln -s /proc/self/fd/1 "$root/dev/stdout"
ln -s /proc/self/fd/2 "$root/dev/stderr"
mount -t tmpfs -o nosuid,nodev,mode=755 tmpfs "$root/run"
for folder in tmp home root var/lib/docker var/lib/containerd; do
    mkdir -p "$store/own/$folder" "$root/$folder"
    mount --bind "$store/own/$folder" "$root/$folder"
done
for folder in $shared; do
    mkdir -p "$root$folder"
    mount --bind "$folder" "$root$folder"
    mount -o remount,bind,ro "$root$folder"
done
chmod 1777 "$root/tmp"
chmod 700 "$root/root"
if [ "$cgroups" = cgroup2 ]; then
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
else
    mount -t tmpfs -o mode=755 cgroup "$root/sys/fs/cgroup"
    for controllers in $cgroups; do
        mkdir "$root/sys/fs/cgroup/${controllers#name=}"
        mount -t cgroup -o "$controllers" cgroup "$root/sys/fs/cgroup/${controllers#name=}"
    done
fi
hostname "$host"
ip link set lo up
# Another docker client may come first in PATH; Debian's fits its daemon and brings BuildKit.
rm -f "$root/usr/local/bin/docker"
cp -r --preserve=mode "$files/." "$root/"
mkdir "$root/run/before"
cd "$root"
pivot_root . run/before
exec chroot . sh -c 'umount -l /run/before && rmdir /run/before && cd / && exec env -i \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    tini -- sh /etc/tetraspark/boot'
