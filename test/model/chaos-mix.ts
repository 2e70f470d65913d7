/**
 * Real trading (the flow of `bench:mix`) on an exchange with two of each process, for longer than a test, while its keepers and indexers are
 * killed at random. At the end every accepted order must be stored, no batch may have been late by more than the lease of a keeper that
 * died, and chain, journal, write side, read model, REST and proofs must agree. It ends with one line of figures, and exits with 1 if one
 * of these does not hold.
 *
 *   npm run chaos:mix -- [--minutes 10] [--rate 20] [--seed 1]
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { type CompleteTarget, startComplete } from '../../bench/intake/complete-target.ts'
import { accountOf } from '../../bench/intake/orders.ts'
import type { FlowMessage, FlowTask, Sample, StartAt } from '../../bench/mix/generator.ts'
import { stagesOf } from '../../bench/mix/stages.ts'
import { toHex } from '../../domain/hex.ts'
import { argumentsOf, positiveNumber, wholeNumber, withDefault } from '../../service/command-line.ts'
import { audit, settled } from '../../stack/audit/audit.ts'
import type { Managed } from '../../stack/supervisor.ts'
import { startSecondInstance } from '../e2e/support/second-instance.ts'
import { proofDifferences } from '../e2e/support/stack.ts'
import { randomOf } from '../support/random.ts'

const { minutes, rate, seed } = argumentsOf({
  command: 'npm run chaos:mix --',
  flags: {
    minutes: withDefault(positiveNumber('duration of the flow'), 10),
    rate: withDefault(positiveNumber('orders per second; the cancels are additional'), 20),
    seed: withDefault(wholeNumber('of the flow and of the random choices'), 1),
  },
})

const ACCOUNTS = 16
/** The keeper's default `LEASE_MS`: the market of a keeper that dies is without an owner for so long. */
const LEASE_MS = 1_500
/** Without faults: the rest of a turn, the next keeper's first turn with its book to load, and a busy machine. */
const ALLOWED_MS = 2_000
/** Pause after each kill: at least until the other processes have taken over, so that a market waits for one lease at most. */
const PAUSE_MS = { least: 6_000, range: 8_000 }
const LEAD_MS = 500
const SETTLE_MS = 120_000

const random = randomOf(seed)

/** Kills one process after another until the flow ends. Returns the number of kills. */
async function killUntil(until: number, processes: readonly Managed[]): Promise<number> {
  for (let kills = 0; ; kills++) {
    await sleep(PAUSE_MS.least + random(PAUSE_MS.range))
    if (Date.now() > until) return kills
    const process = processes[random(processes.length)] as Managed
    await process.restart('SIGKILL')
    await process.ready()
  }
}

/** Sends the flow to the apis and kills processes meanwhile. */
async function send(
  { keys, markets }: CompleteTarget,
  ports: readonly number[],
  processes: readonly Managed[],
) {
  const program = new URL('../../bench/mix/generator.ts', import.meta.url)
  const generator = fork(program, { serialization: 'advanced' })
  try {
    const flow = { rate, seconds: minutes * 60, accounts: keys.length, seed }
    generator.send({ ports, keys, markets, flow } satisfies FlowTask)
    await once(generator, 'message')
    const startAt = Date.now() + LEAD_MS
    generator.send({ startAt } satisfies StartAt)
    const sent = once(generator, 'message') as Promise<[FlowMessage]>
    const kills = await killUntil(startAt + flow.seconds * 1000, processes)
    const [message] = await sent
    if (!('samples' in message)) throw new Error('the generator has sent no samples')
    return { samples: message.samples, startAt, kills }
  } finally {
    generator.kill()
  }
}

const isPlaced = ({ kind, code }: Sample): boolean => kind !== 'cancel' && code === null

async function differences({ stack, keys, db }: CompleteTarget): Promise<readonly string[]> {
  const { provider, specs, file } = stack
  const { rows: users } = await sql<{ user_id: number; address: string }>`
    select user_id, address from users
  `.execute(db)
  const accounts = keys.map((api_key, index) => {
    const { address, key } = accountOf(index)
    const found = users.find((user) => user.address.toLowerCase() === address.toLowerCase())
    return { api_key, address, private_key: toHex(key), user_id: found?.user_id ?? 0 }
  })
  const { margin_bank: marginBank, forwarder } = file.contracts
  const audited = await audit({
    db,
    provider,
    specs,
    marginBank,
    forwarder,
    baseUrl: file.base_url,
    accounts,
  })
  return [...audited.differences, ...(await proofDifferences(stack))]
}

const target = await startComplete({ accounts: ACCOUNTS })
try {
  const { stack, db } = target
  const second = await startSecondInstance(stack)
  const processes = [stack.keeper, stack.indexer, second.keeper, second.indexer]
  const ports = [target.port, Number(new URL(second.baseUrl).port)]
  const { samples, startAt, kills } = await send(target, ports, processes)
  await settled(db, SETTLE_MS)
  const accepted = samples.filter(isPlaced).length
  const { orders, batched } = await stagesOf(db, new Map(), { from: startAt, until: Date.now() })
  const latest = Math.max(...batched)
  const problems = [
    ...(orders === accepted ? [] : [`${accepted} orders were accepted, ${orders} are stored`]),
    ...(latest <= LEASE_MS + ALLOWED_MS ? [] : [`an order waited ${latest} ms for its batch`]),
    ...(await differences(target)),
  ]
  for (const problem of problems) console.log(problem)
  console.log(
    `${minutes} minutes, ${kills} kills, ${accepted} of ${samples.length} requests placed an order, ` +
      `latest batch ${latest} ms after an order, ${problems.length} differences`,
  )
  if (problems.length > 0) process.exitCode = 1
  await second.stop()
} finally {
  await target.stop()
}
