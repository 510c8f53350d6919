#!/bin/sh
# Makes a Redis Cluster of the given nodes, each master with one replica, unless the first of them is in a cluster already. Then waits
# until every node sees all slots served, for at most a minute. The password is in REDISCLI_AUTH.
#
#   create-cluster.sh HOST:PORT HOST:PORT …
set -eu

ask() { # HOST:PORT COMMAND…
  node=$1; shift
  redis-cli -h "${node%:*}" -p "${node##*:}" "$@"
}

# A node that is in no cluster knows only itself.
if [ "$(ask "$1" cluster nodes | grep -c .)" = 1 ]; then
  redis-cli --cluster create "$@" --cluster-replicas 1 --cluster-yes
fi

tries=60
for node; do
  until ask "$node" cluster info | grep -q cluster_state:ok; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || { echo "$node does not see all slots served after a minute" >&2; exit 1; }
    sleep 1
  done
done
