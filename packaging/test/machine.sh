# machine.sh - for steps of packaging/test.sh: emulated machines that boot a root of Debian with systemd from a disk, with the package in it, run
# packaging/test/guest.sh as a service and turn themselves off. What that prints behind "@ " counts as our own.

# kernel_of ARCHITECTURE SUITE PATTERN: the newest kernel of that suite whose package has such a name, unpacked into $kernel, with a list of its modules.
kernel_of()
{
	local state=$roots/kernels/$1-$2 package options
	kernel=$state/$3
	[ ! -e "$kernel/.whole" ] || return 0
	note "a kernel of $2 for $1"
	rm -rf "$kernel"
	mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$kernel"
	: >"$state/status"
	echo "deb [arch=$1 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $2 main" >"$state/sources.list"
	# A state of its own: what this machine has, and where from, stays as it is.
	options="-o Dir::Etc::sourcelist=$state/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$state/lists -o Dir::Cache=$state/cache
		-o Dir::State::status=$state/status -o Acquire::Languages=none -o APT::Architecture=$1 -o APT::Architectures=$1 -o APT::Sandbox::User=root"
	apt-get -q $options update || return 1
	package=$(apt-cache $options search --names-only "^linux-image-[0-9].*-$3\$" | cut -d' ' -f1 | sort -V | tail -1)
	[ -n "$package" ] || { echo "$2 has no kernel $3"; return 1; }
	(cd "$kernel" && apt-get -q $options download "$package" && dpkg-deb -x ./*.deb . && rm ./*.deb) || return 1
	# From Debian 13 on modules are below /usr.
	[ -e "$kernel/lib" ] || ln -s usr/lib "$kernel/lib"
	depmod -b "$kernel" "$(ls "$kernel/lib/modules")" || return 1
	touch "$kernel/.whole"
}

# machine_root NAME SUITE ARCHITECTURE PACKAGES...: $machine, a copy of that root with systemd and the packages, once.
machine_root()
{
	local run=inside
	machine=$roots/machine-$1
	[ ! -e "$machine/.whole" ] || return 0
	[ "$3" = "$native" ] || run=foreign
	bootstrap "$2" $([ "$3" = "$native" ] || echo "$3") || return 1
	note "a root for the machine: $1"
	rm -rf "$machine"
	cp -a "$roots/$made" "$machine" || return 1
	rm "$machine/.whole"
	cp /etc/resolv.conf "$machine/etc/resolv.conf"
	printf '#!/bin/sh\nexit 101\n' >"$machine/usr/sbin/policy-rc.d" # nothing is started here
	chmod 755 "$machine/usr/sbin/policy-rc.d"
	shift 3
	$run "$machine" sh -c "apt-get update -q && apt-get install -y -q --no-install-recommends systemd-sysv dbus udev busybox-static kmod iproute2 procps $*" || return 1
	rm -f "$machine/usr/sbin/policy-rc.d"
	$run "$machine" apt-get clean
	echo gasflame-machine >"$machine/etc/hostname"
	cat >"$machine/etc/systemd/system/gasflame-try.service" <<-END
	[Unit]
	Description=what packaging/test.sh tries
	After=multi-user.target
	[Service]
	Type=oneshot
	ExecStart=/bin/bash /root/guest.sh
	ExecStopPost=/bin/systemctl --force --force poweroff
	StandardOutput=tty
	StandardError=tty
	TTYPath=/dev/console
	TimeoutStartSec=1500
	[Install]
	WantedBy=multi-user.target
	END
	mkdir -p "$machine/etc/systemd/system/multi-user.target.wants"
	ln -sf ../gasflame-try.service "$machine/etc/systemd/system/multi-user.target.wants/gasflame-try.service"
	sed -i 's/^After=.*/After=basic.target dbus.service/' "$machine/etc/systemd/system/gasflame-try.service"
	touch "$machine/.whole"
}

# machine_disk DEB ARCHITECTURE: the root with that package as an ext4 file system, and what finds it, in $out/machine.
machine_disk()
{
	local run=inside module tree=$out/machine version ours
	[ "$2" = "$native" ] || run=foreign
	rm -rf "$tree"
	mkdir -p "$tree/init/bin" "$tree/init/modules"
	cp "$1" "$machine/root/gasflame.deb"
	cp "$root/packaging/test/guest.sh" "$machine/root/guest.sh"
	# A capture of this machine, and how it looks here.
	ours=$(static_of "$native") || return 1
	"$ours" run -q -e cpu,wait -o "$out/sample.gasflame" -- sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done' || [ $? -eq 3 ] || return 1
	"$ours" report -q --format folded "$out/sample.gasflame" >"$machine/root/sample.folded" || return 1
	cp "$out/sample.gasflame" "$machine/root/sample.gasflame"
	$run "$machine" sh -c 'apt-get install -y -q --no-install-recommends --allow-downgrades /root/gasflame.deb' || return 1
	version=$(ls "$kernel/lib/modules")
	rm -rf "$machine/lib/modules"
	mkdir -p "$machine/lib/modules"
	cp -a "$kernel/lib/modules/$version" "$machine/lib/modules/"
	mke2fs -q -t ext4 -d "$machine" -E root_owner=0:0 "$tree/disk" 2500M || return 1
	# The first file system: it loads what the disk needs, in order, and goes on there.
	cp "$machine/bin/busybox" "$tree/init/bin/busybox"
	for module in virtio_pci virtio_mmio virtio_blk ext4; do
		modprobe -d "$kernel" -S "$version" --show-depends "$module" 2>/dev/null | sed -n 's/^insmod \([^ ]*\).*/\1/p'
	done | awk '!seen[$0]++' >"$tree/modules"
	: >"$tree/init/modules/order"
	while IFS= read -r module; do
		cp "$module" "$tree/init/modules/"
		case $module in *.xz) unxz -f "$tree/init/modules/${module##*/}"; module=${module%.xz} ;; esac
		echo "${module##*/}" >>"$tree/init/modules/order"
	done <"$tree/modules"
	cat >"$tree/init/init" <<-'END'
	#!/bin/busybox sh
	export PATH=/bin
	/bin/busybox --install -s /bin
	mkdir -p /proc /dev /new
	mount -t proc proc /proc
	mount -t devtmpfs devtmpfs /dev
	while read -r module; do insmod /modules/$module; done </modules/order
	until [ -b /dev/vda ]; do usleep 100000; done
	mount -t ext4 /dev/vda /new
	exec switch_root /new /lib/systemd/systemd
	END
	chmod 755 "$tree/init/init"
	(cd "$tree/init" && find . | busybox cpio -o -H newc 2>/dev/null) >"$tree/initramfs"
}

# machine_run ARCHITECTURE: its console is in $out/machine-ARCHITECTURE.txt. Emulated, without KVM: it is slow, and it is the same everywhere.
machine_run()
{
	local words append console=$out/machine-$1.txt vmlinuz
	vmlinuz=$(ls "$kernel"/boot/vmlinu[xz]-* | head -1)
	case $1 in
	amd64) words="qemu-system-x86_64 -M q35 -accel tcg,thread=single -cpu max,-cx16" append="console=ttyS0 no_timer_check" ;;
	arm64) words="qemu-system-aarch64 -M virt -accel tcg,thread=multi -cpu max,pauth-impdef=on" append="console=ttyAMA0" ;;
	esac
	note "booting $(basename "$vmlinuz")"
	timeout 1800 $words -smp 2 -m 2G -nographic -no-reboot -nic none -kernel "$vmlinuz" -initrd "$out/machine/initramfs" \
		-drive "file=$out/machine/disk,format=raw,if=virtio,cache=unsafe" \
		-append "$append panic=-1 loglevel=3 systemd.show_status=false systemd.unified_cgroup_hierarchy=1 root=/dev/vda rw" </dev/null >"$console" 2>&1 || true
	grep -aq '@ done' "$console" || not_ok "$1: the machine ran to its end" "$console"
	relay "$console"
}
