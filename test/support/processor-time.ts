/** Processor time of processes, from Linux's process table. */
import { readdirSync, readFileSync } from 'node:fs'

/** Ticks per second in `/proc`, the same on every Linux. */
const TICKS = 100

interface ProcessTimes {
  readonly group: number
  /** User and system time of the process and of its children that have ended, seconds. */
  readonly seconds: number
}

/** Null if the process has ended, or on systems without `/proc`. */
function timesOf(pid: number | 'self' | string): ProcessTimes | null {
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return null
  }
  // The name of the program, in parentheses, may contain spaces. The fields after it begin with the third.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const field = (number: number): number => Number(fields[number - 3])
  return { group: field(5), seconds: (field(14) + field(15) + field(16) + field(17)) / TICKS }
}

/** Seconds of this process and of its children that have ended; on systems without `/proc` of this process alone. */
export function ownProcessorTime(): number {
  const { user, system } = process.cpuUsage()
  return timesOf('self')?.seconds ?? (user + system) / 1e6
}

/** Seconds of the running processes of a group and of their ended children; 0 on systems without `/proc`. */
export function groupProcessorTime(group: number): number {
  let pids: string[]
  try {
    pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch {
    return 0
  }
  return pids
    .map(timesOf)
    .filter((times) => times?.group === group)
    .reduce((total, times) => total + (times?.seconds ?? 0), 0)
}
