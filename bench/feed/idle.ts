/** The memory of an api process with many sockets that follow nothing that changes. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CompleteTarget } from '../intake/complete-target.ts'
import type { ReadersTask } from './readers.ts'

/** Heartbeats have been sent to all. */
const SETTLE_MS = 10_000

const residentMiB = (pid: number): number =>
  Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024)

export async function measureIdle(target: CompleteTarget, sockets: number) {
  const pid = target.stack.api.pid() ?? 0
  const without = residentMiB(pid)
  const readers = fork(new URL('./readers.ts', import.meta.url), { serialization: 'advanced' })
  try {
    const url = `ws://127.0.0.1:${target.port}/v0/ws`
    readers.send({ url, sockets, topics: ['system'], journal: null } satisfies ReadersTask)
    await once(readers, 'message')
    await sleep(SETTLE_MS)
    return { sockets, without_mib: without, with_mib: residentMiB(pid) }
  } finally {
    readers.kill()
  }
}
