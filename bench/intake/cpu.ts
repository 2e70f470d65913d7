/** Reads the CPU time of other processes from /proc. */
import { readFileSync } from 'node:fs'
import { sql } from 'kysely'
import type { Target } from './target.ts'

/** By program name, then by process id: seconds of CPU time. */
export type CpuTimes = ReadonlyMap<string, ReadonlyMap<number, number>>

const TICKS_PER_SECOND = 100

/** NaN if the system has no /proc or the process has ended. */
function secondsOf(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
  } catch {
    return Number.NaN
  }
}

export async function cpuTimes({ db, processes }: Target): Promise<CpuTimes> {
  const { rows } = await sql<{ pid: number }>`select pid from pg_stat_activity`.execute(db)
  const database = new Map(rows.map(({ pid }) => [pid, secondsOf(pid)]))
  const own = Object.entries(processes).map(
    ([name, pid]) => [name, new Map([[pid, secondsOf(pid)]])] as const,
  )
  return new Map([...own, ['database', database]])
}

/** Seconds used between two readings, by program. A process that is missing in either reading counts as zero. */
export function cpuBetween(before: CpuTimes, after: CpuTimes): Map<string, number> {
  const used = new Map<string, number>()
  for (const [name, times] of after) {
    let sum = 0
    for (const [pid, seconds] of times) sum += seconds - (before.get(name)?.get(pid) ?? seconds)
    used.set(name, sum)
  }
  return used
}
