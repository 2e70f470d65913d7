#!/bin/sh
# Archives one file of WAL: archive_command = 'sh /opt/clearbatch/docs/operate/archive-wal.sh "%p" "%f" /var/backups/clearbatch/wal'
# A file counts once it is durable under its name. Postgres repeats a call whose success it has forgotten, so the same content again is a success.
set -eu
path=$1 name=$2 folder=$3
[ -e "$folder/$name" ] && exec cmp -s "$path" "$folder/$name"
cp "$path" "$folder/$name.part"
sync "$folder/$name.part"
mv "$folder/$name.part" "$folder/$name"
sync "$folder"
