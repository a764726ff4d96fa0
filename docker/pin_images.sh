#!/bin/bash
# Write behind each tag of an env file the digest that it has now: pin_images.sh FILE. All of them, or none.
set -euo pipefail

file=$1
fresh=$(mktemp "$file.XXXXXX")
trap 'rm -f "$fresh"' EXIT
while IFS= read -r line || [ -n "$line" ]; do
  if [[ $line == [A-Z]*=* ]]; then
    name=${line%%=*} image=${line#*=}
    image=${image%%@*}
    digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$image") || digest=
    if ! [[ $digest =~ ^sha256:[0-9a-f]{64}$ ]]; then
      echo "error: no registry knows the digest of $image; $file is as it was" >&2
      exit 1
    fi
    line=$name=$image@$digest
  fi
  printf '%s\n' "$line" >>"$fresh"
done <"$file"
chmod --reference="$file" "$fresh"
mv "$fresh" "$file"
