#!/bin/bash
# Print the path of Helm: the one that is installed, or one built from its source, once, into the folder build. It takes Go
# 1.21 or newer, which fetches the version that Helm asks for, and some minutes. Go compares the source with the public
# database of checksums.
set -euo pipefail

version=v3.22.0
folder=$(cd "$(dirname "$0")/.." && pwd)/build/helm/$version
command -v helm && exit
if ! [ -x "$folder/helm" ]; then
  found=$({ go env GOVERSION || true; } 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
  if [ "${found:-0}" -lt 21 ]; then
    echo "error: no helm here, and no Go 1.21 or newer to build it with" >&2
    echo "hint: install Helm 3, or golang-go of Debian 13" >&2
    exit 1
  fi
  echo 'building Helm, some minutes the first time ...' >&2
  # What Go keeps of the build is a gigabyte, of which nothing is needed again.
  work=$(mktemp -d "${TMPDIR:-/tmp}/helm.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  GOTOOLCHAIN=auto GOFLAGS='-modcacherw -trimpath' GOBIN=$work/bin GOPATH=$work/go GOMODCACHE=$work/go/pkg/mod \
    GOCACHE=$work/cache nice -n 10 go install "helm.sh/helm/v3/cmd/helm@$version" >"$work/log" 2>&1 || {
      tail -n 3 "$work/log" >&2
      echo "error: Helm $version cannot be built here" >&2
      exit 1
    }
  mkdir -p "$folder"
  mv "$work/bin/helm" "$folder/helm"
fi
echo "$folder/helm"
