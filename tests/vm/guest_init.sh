#!/bin/busybox sh
# SPDX-License-Identifier: Apache-2.0
# First process of the guest: loads modules, runs /test, tells the host how it
# ended through QEMU's exit port: 0x10 makes its status 33, 0x11 makes it 35.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
export GTEST_COLOR=no
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
exec >/dev/console 2>&1 </dev/null
for module in /modules/*.ko; do
  [ -e "$module" ] || continue
  insmod "$module" || echo "guest: insmod $module failed"
done
ip link set lo up
echo "guest: kernel $(uname -r), $(cut -d' ' -f1 /proc/uptime) s after its start"
if /test; then verdict='\020'; else verdict='\021'; fi
dmesg | grep -E 'DMAR:.*[Ff]ault|BUG:|WARNING:|Oops' && verdict='\021'
echo "guest: done, $(cut -d' ' -f1 /proc/uptime) s after its start"
printf "$verdict" | dd of=/dev/port bs=1 seek=244 count=1 2>/dev/null
poweroff -f
