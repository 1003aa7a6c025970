# SPDX-License-Identifier: Apache-2.0
# Read by the guest's tests: gives all functions of the NIC (HEDDLE_PCI holds
# vendor:device of each kind) to vfio-pci and sets FUNCTIONS to their addresses.
FUNCTIONS=""
for directory in /sys/bus/pci/devices/*; do
  identity="$(cat "$directory/vendor"):$(cat "$directory/device")"
  case " $HEDDLE_PCI " in *" $identity "*) ;; *) continue ;; esac
  echo vfio-pci >"$directory/driver_override"
  echo "${directory##*/}" >/sys/bus/pci/drivers_probe
  FUNCTIONS="$FUNCTIONS ${directory##*/}"
done
FUNCTIONS=${FUNCTIONS# }

# claim TEXT COMMAND...: a test, by name.
failed=0
claim() {
  name=$1
  shift
  if "$@"; then echo "ok - $name"; else
    echo "not ok - $name"
    failed=$((failed + 1))
  fi
}

# wait_for COMMAND...: until it succeeds, a minute at most.
wait_for() {
  end=$(($(date +%s) + 60))
  until "$@"; do
    [ "$(date +%s)" -lt $end ] || return 1
    usleep 10000
  done
}

listens() { grep -qi ":$(printf %04X "$1") [0-9:]* 0A" /proc/net/tcp; }
