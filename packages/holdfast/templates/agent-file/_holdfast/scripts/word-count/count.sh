#!/bin/sh
most=
while [ $# -gt 0 ]; do
  case "$1" in
    --file) file="$2" ;;
    --most) most="$2" ;;
  esac
  shift 2
done
words=$(wc -w < "$file") || exit 1
words=$((words))
echo "$words words"
if [ -n "$most" ] && [ "$words" -gt "$most" ]; then
  echo "$((words - most)) too many" >&2
  exit 3
fi
