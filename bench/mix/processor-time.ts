/** Processor time of every process of the exchange, read from /proc. */
import { readdirSync, readFileSync } from 'node:fs'
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'

/** Seconds of processor time by kind of process. */
export type ProcessorTimes = ReadonlyMap<string, number>

const TICKS_PER_SECOND = 100

interface Stat {
  readonly parent: number
  readonly name: string
  readonly seconds: number
  /** Processor time of ended children that were waited for. */
  readonly endedChildren: number
}

/** Null if the process has ended. */
function statOf(pid: number): Stat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const seconds = (from: number): number =>
      (Number(fields[from]) + Number(fields[from + 1])) / TICKS_PER_SECOND
    return {
      name: text.slice(text.indexOf('(') + 1, text.lastIndexOf(')')),
      parent: Number(fields[1]),
      seconds: seconds(11),
      endedChildren: seconds(13),
    }
  } catch {
    return null
  }
}

/** Processor time of a running process; NaN if it has ended. */
export const processorSeconds = (pid: number): number => statOf(pid)?.seconds ?? Number.NaN

/** This process and all that descend from it, by process id. */
export function descendants(): Map<number, Stat> {
  const all = new Map<number, Stat>()
  for (const entry of readdirSync('/proc')) {
    const stat = /^\d+$/.test(entry) ? statOf(Number(entry)) : null
    if (stat !== null) all.set(Number(entry), stat)
  }
  const belongs = (pid: number): boolean => {
    if (pid === process.pid) return true
    const parent = all.get(pid)?.parent ?? 0
    return parent !== 0 && belongs(parent)
  }
  return new Map([...all].filter(([pid]) => belongs(pid)))
}

/**
 * By kind of process: those of `known`, the chain, and the database's backends by their login. `database: other` is the rest of the
 * database, ended backends included.
 */
export async function processorTimes(db: Db, known: ReadonlyMap<number, string>): Promise<ProcessorTimes> {
  const { rows } = await sql<{ pid: number; login: string | null }>`
    select pid, usename as login from pg_stat_activity
  `.execute(db)
  const logins = new Map(rows.map(({ pid, login }) => [pid, login]))
  const times = new Map<string, number>()
  for (const [pid, { name, seconds, endedChildren }] of descendants()) {
    const isDatabase = name.startsWith('postgres')
    const kind =
      known.get(pid) ??
      (isDatabase ? `database: ${logins.get(pid) ?? 'other'}` : name === 'anvil' ? 'chain' : 'rest')
    times.set(kind, (times.get(kind) ?? 0) + seconds + (isDatabase ? endedChildren : 0))
  }
  return times
}

export const timesBetween = (before: ProcessorTimes, after: ProcessorTimes): ProcessorTimes =>
  new Map([...after].map(([kind, seconds]) => [kind, seconds - (before.get(kind) ?? 0)]))
