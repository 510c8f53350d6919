#!/bin/sh
# A buyer with curl: finds a service, calls it, and reads what the call cost.
#
#   TOLLGATE_URL=http://127.0.0.1:8080 TOLLGATE_KEY=acf_…:sk_… sh examples/buyer.sh

set -eu
: "${TOLLGATE_URL:?Set it to the address of the gateway. examples/README.md says how.}"
: "${TOLLGATE_KEY:?Set it to an API key. examples/README.md says how.}"

url=${TOLLGATE_URL%/}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Finding services needs no key. sed takes the id of the first service out of the JSON.
service=${TOLLGATE_SERVICE:-$(curl -sS -f "$url/api/v1/discover?q=text+statistics&limit=1" |
  sed -n 's/.*"services":\[{"id":"\([^"]*\)".*/\1/p')}
[ -n "$service" ] || { echo 'No service was found. Set TOLLGATE_SERVICE to the id of one.' >&2; exit 1; }

# The value of a header of the last response, by its name in lower case.
header() { tr 'A-Z\r' 'a-z ' <"$folder/head" | sed -n "s/^$1: *\([^ ]*\).*/\1/p"; }

# Calls the service. curl fails without an HTTP response, and then this script ends (set -e): the call may have been charged, so
# look at /api/v1/usage/me before you repeat it. `curl --retry` does not ask whether a call was paid: do not use it here.
call() {
  # curl reads the key from its input, because other users of this machine can see the arguments of a program.
  status=$(printf 'header = "Authorization: Bearer %s"\n' "$TOLLGATE_KEY" |
    curl -sS -K - -D "$folder/head" -o "$folder/body" -w '%{http_code}' \
      -H 'X-ACF-Max-Amount: 0.01' -H 'Content-Type: text/plain' --data-binary 'How many words are these?' \
      "$url/api/v1/proxy/$service/")
}

call
# A response without X-ACF-Amount, or with 0 in it, cost nothing: once Retry-After is over it is safe to try again.
for attempt in 2 3; do
  case "$status/$(header x-acf-amount)" in 429/ | 429/0 | 503/ | 503/0) ;; *) break ;; esac
  seconds=$(header retry-after)
  # A service may send a date here. Only the gateway always sends seconds.
  case "$seconds" in '' | *[!0-9]*) break ;; esac
  echo "refused with $status: attempt $attempt follows in $seconds s"
  sleep "$seconds"
  call
done

cat "$folder/body"
if [ "$status" -lt 400 ]; then
  echo "paid \$$(header x-acf-amount), \$$(header x-acf-balance) left"
  exit
fi
echo
# A service may answer 402 too, in its own words. Without X-ACF-Amount the answer is the gateway's.
case "$status/$(header x-acf-amount)" in
402/) echo 'The account needs a credit: "required" is the price of this call, "balance" what the account has. Or the key'"'"'s budget is spent: then "error" is "budget_exceeded".' >&2 ;;
*) echo "The call failed with $status." >&2 ;;
esac
exit 1
