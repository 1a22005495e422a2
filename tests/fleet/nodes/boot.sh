# Runs in the node, below tini: users, sshd, dockerd.
set -eu
# No password, which locks nobody out here: sshd refuses an account whose password is locked.
id alice >/dev/null 2>&1 || useradd -m -s /bin/bash -p '*' alice
for user in root alice; do
    home=$(getent passwd "$user" | cut -d: -f6)
    install -d -m 700 -o "$user" -g "$user" "$home/.ssh"
    install -m 600 -o "$user" -g "$user" /etc/tetraspark/authorized_keys "$home/.ssh/"
done
mkdir -p /run/sshd
/usr/sbin/sshd -f /etc/tetraspark/sshd_config -E /var/log/sshd.log
sh /etc/tetraspark/dockerd
exec sleep infinity
