// A process that ends with the test that started it, whatever becomes of that: a command is run by a line for /bin/sh.

/**
 * The shell becomes the command (same pid, so signals reach it). What it leaves behind is a reader of its standard input
 * that kills it when that closes without a word, which is what happens when its starter dies, by SIGKILL too: who sees
 * the command's end says a line.
 */
export const SUPERVISED = `exec 3<&0
{ read -r _ <&3 || kill -9 $$; } >/dev/null 2>&1 &
exec "$0" "$@" 3<&- </dev/null`;
