/**
 * Blocks that are applied per market in parallel transactions reach the state of a fresh database, wherever their followers are stopped, whatever the
 * chain replaces, and however many followers there are.
 */
import { expect } from 'chai'
import fc from 'fast-check'
import type { KyselyPlugin } from 'kysely'
import { after, before, describe, it } from 'mocha'
import type { Db } from '../../../db/client.ts'
import { createShard, lockShard } from '../../../db/journal.ts'
import { listMarket } from '../../../db/markets.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../../domain/journal/journal-row.ts'
import type { Address, Millis } from '../../../domain/units.ts'
import { Follower } from '../../../indexer/ingest/follow.ts'
import type { ChainLog } from '../../../indexer/ports.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { until } from '../../api/support/wait.ts'
import { chainState } from '../support/audit.ts'
import { freshDatabase, type TestDatabase } from '../support/database.ts'
import { CHAIN_ID } from '../support/exchange-fixture.ts'
import { matchPart } from '../support/matched-part.ts'
import {
  copyOf,
  copyPart,
  MemoryChain,
  type Recording,
  recordParts,
  txHashOf,
} from '../support/recorded-chain.ts'

const MARKETS = 3
const PARTS = 5
const ACCOUNTS = 4
const BANK = MarginBank__factory.createInterface()
const TOKEN = 10n ** 18n
const SILENT = { info() {}, warn() {}, error() {} }

type Item =
  | { readonly kind: 'part'; readonly market: number }
  | { readonly kind: 'deposit' | 'request' | 'payout'; readonly account: number; readonly tokens: number }

type Action =
  | { readonly kind: 'block'; readonly items: readonly Item[] }
  | { readonly kind: 'fork'; readonly depth: number }
  | { readonly kind: 'pass'; readonly budgets: readonly number[] }

const item: fc.Arbitrary<Item> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('part' as const), market: fc.nat(MARKETS - 1) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom('deposit' as const, 'request' as const, 'payout' as const),
      account: fc.nat(ACCOUNTS - 1),
      tokens: fc.integer({ min: 1, max: 9 }),
    }),
  },
)

/** A pass of each follower, which is stopped after so many statements and commits. */
const pass = fc.record({
  kind: fc.constant('pass' as const),
  budgets: fc.array(fc.integer({ min: 5, max: 160 }), { minLength: 1, maxLength: 2 }),
})

const actions: fc.Arbitrary<Action[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('block' as const),
        items: fc.array(item, { minLength: 1, maxLength: 8 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('fork' as const), depth: fc.integer({ min: 1, max: 2 }) }),
    },
    { weight: 5, arbitrary: pass },
  ),
  { minLength: 4, maxLength: 14 },
)

/** Blocks that are stopped after more and more statements, and replaced: whatever else happens, some are recorded and not complete then. */
const STOPPED: readonly Action[] = Array.from({ length: 15 }, (_, at) => 10 * (at + 1)).flatMap((budget) => [
  {
    kind: 'block',
    items: [
      { kind: 'deposit', account: 1, tokens: 1 },
      { kind: 'part', market: 0 },
    ],
  },
  { kind: 'pass', budgets: [budget] },
  { kind: 'fork', depth: 1 },
])

type MinedLog = Pick<ChainLog, 'txHash' | 'address' | 'topics' | 'data'>

class Stopped extends Error {
  override readonly name = 'Stopped'
}

/** Stops what uses it after so many statements and points between transactions. */
class Budget {
  #left: number
  readonly plugin: KyselyPlugin

  constructor(left: number) {
    this.#left = left
    this.plugin = {
      transformQuery: ({ node }) => {
        this.spend()
        return node
      },
      transformResult: async ({ result }) => result,
    }
  }

  spend(): void {
    if (--this.#left < 0) throw new Stopped('the process was stopped')
  }
}

/** The chain, and how many parts of each market it has below each of its blocks. */
class ChainModel {
  readonly chain = new MemoryChain()
  readonly #recording: Recording
  readonly #accounts: readonly Address[]
  #mined: number[][] = []

  constructor(recording: Recording, accounts: readonly Address[]) {
    this.#recording = recording
    this.#accounts = accounts
  }

  /** The accounts' deposits, and perhaps a request of one of them that takes its whole free balance. */
  begin({ isRequested = true } = {}): void {
    const { timestamp, deposits } = this.#recording
    this.chain.append(timestamp, [])
    this.chain.append(timestamp, deposits)
    const whole = { kind: 'request' as const, account: 0, tokens: 1_000_000 }
    if (isRequested) this.chain.append(timestamp, [this.#logOf(whole, 0)])
  }

  append(items: readonly Item[]): void {
    const mined = [...(this.#mined.at(-1) ?? Array(MARKETS).fill(0))]
    const logs = items.flatMap((next, at): MinedLog[] => {
      if (next.kind !== 'part') return [this.#logOf(next, at)]
      const recorded = this.#recording.parts[mined[next.market] as number]
      if (recorded === undefined) return []
      mined[next.market] = (mined[next.market] as number) + 1
      const { trader } = copyOf(this.#recording.spec, next.market)
      return [{ ...recorded.log, txHash: txHashOf(next.market, recorded.part.actionId), address: trader }]
    })
    this.#mined.push(mined)
    this.chain.append(this.#recording.timestamp, logs)
  }

  fork(depth: number): void {
    const removed = Math.min(depth, this.#mined.length)
    this.#mined.splice(this.#mined.length - removed)
    this.chain.fork(removed)
    this.append([])
  }

  #logOf({ kind, account, tokens }: Exclude<Item, { kind: 'part' }>, at: number): MinedLog {
    const owner = this.#accounts[account] as Address
    const amount = BigInt(tokens) * TOKEN
    const encoded = {
      deposit: () => BANK.encodeEventLog('Deposited', [owner, owner, amount]),
      request: () => BANK.encodeEventLog('WithdrawalRequested', [owner, amount, amount, 1n]),
      payout: () => BANK.encodeEventLog('Withdrawn', [owner, amount]),
    }[kind]()
    const txHash = txHashOf(100 + this.#mined.length, at)
    return { ...encoded, txHash, address: this.#recording.options.bank }
  }
}

describe('blocks that are applied in steps', function () {
  this.timeout(280_000)
  let recording: Recording
  let accounts: readonly Address[]
  const open: TestDatabase[] = []
  before(async () => {
    recording = await recordParts(PARTS, ACCOUNTS)
    accounts = recording.deposits.flatMap((log) => {
      const event = BANK.parseLog(log)
      return event?.name === 'Deposited' ? [(event.args[0] as string).toLowerCase() as Address] : []
    })
    expect(new Set(accounts).size).to.equal(ACCOUNTS)
  })
  const closeAll = async (): Promise<void> => {
    for (const test of open.splice(0)) await test.close()
  }
  after(closeAll)

  function follower(db: Db, { chain }: ChainModel, budget = new Budget(Number.POSITIVE_INFINITY)): Follower {
    const metrics = { headReached() {}, blockApplied() {}, rolledBack() {}, mismatch() {} }
    const clock = { now: () => Date.now() as Millis }
    const killPoint = () => budget.spend()
    const ports = { db: db.withPlugin(budget.plugin), chain, clock, logger: SILENT, metrics, killPoint }
    return new Follower(ports, { ...recording.options, stepFacts: 1 })
  }

  /** A database that has the chain's first blocks and has matched all parts. */
  async function database(start: { readonly isRequested?: boolean } = {}): Promise<TestDatabase> {
    const first = new ChainModel(recording, accounts)
    first.begin(start)
    const test = await freshDatabase()
    open.push(test)
    await createShard(test.db, ACCOUNTS_SHARD)
    const markets = Array.from({ length: MARKETS }, (_, number) => copyOf(recording.spec, number))
    for (const market of markets) await listMarket(test.db, market)
    await follower(test.db, first).pass()
    for (const { part } of recording.parts) {
      for (const [number, market] of markets.entries()) {
        const relayer = {
          address: `0xrelayer${number}`,
          chain_id: CHAIN_ID,
          lane: `m${number}`,
          next_nonce: 0,
        }
        await matchPart(test.db, copyPart(part, market), txHashOf(number, part.actionId), relayer)
      }
    }
    return test
  }

  async function reachHead(db: Db, model: ChainModel): Promise<void> {
    const both = [follower(db, model), follower(db, model)]
    for (let passes = 0; passes < 30; passes++) {
      const reached = await Promise.all(both.map((each) => each.pass()))
      if (reached.every(Boolean)) return
    }
    throw new Error('the head was not reached in 30 passes')
  }

  /** What the journal has of the chain: each shard's rows in order, without those that were rolled back and the rollbacks. */
  async function journalOf(db: Db): Promise<Record<string, unknown[]>> {
    const rows = await db
      .selectFrom('journal')
      .select(['shard', 'row'])
      .orderBy('shard')
      .orderBy('seq')
      .execute()
    const shards = new Map<string, unknown[]>()
    for (const { shard, row } of rows) {
      if (row.kind !== 'part_settled' && row.kind !== 'balance_changed') continue
      const { block, tx_hash, log_index } = row
      const change =
        row.kind === 'balance_changed'
          ? [row.cause, row.free_delta, row.pending_withdrawal_delta]
          : row.fills.map(({ fee, free_delta, from_pending }) => [fee, free_delta, from_pending])
      const fact = { block, tx_hash, log_index, change }
      const own = shards.get(shard) ?? []
      shards.set(shard, own)
      if (row.rollback) expect(own.pop(), 'the newest fact is rolled back first').to.deep.equal(fact)
      else own.push(fact)
    }
    return Object.fromEntries([...shards].filter(([, own]) => own.length > 0))
  }

  async function placesOf(db: Db): Promise<'applied' | 'recorded' | 'partly applied'> {
    const steps = await db.selectFrom('chain_steps').select('block').execute()
    const [first] = steps
    if (first === undefined) return 'applied'
    const logs = await db.selectFrom('chain_logs').select('shard').where('block', '=', first.block).execute()
    return logs.some(({ shard }) => shard !== null) ? 'partly applied' : 'recorded'
  }

  it('when followers are stopped anywhere and the chain forks, it reaches the state of a fresh database', async () => {
    const seen = { recorded: 0, 'partly applied': 0, applied: 0, forkedOpen: 0, pending: 0 }
    await fc.assert(
      fc
        .asyncProperty(actions, async (all) => {
          const model = new ChainModel(recording, accounts)
          model.begin()
          const test = await database()
          for (const action of all) {
            if (action.kind === 'block') model.append(action.items)
            if (action.kind === 'fork') {
              if ((await placesOf(test.db)) !== 'applied') seen.forkedOpen++
              model.fork(action.depth)
            }
            if (action.kind !== 'pass') continue
            const passes = action.budgets.map((budget) => follower(test.db, model, new Budget(budget)).pass())
            for (const outcome of await Promise.allSettled(passes))
              if (outcome.status === 'rejected' && !(outcome.reason instanceof Stopped)) throw outcome.reason
            seen[await placesOf(test.db)]++
          }
          await reachHead(test.db, model)
          const fresh = await database()
          await reachHead(fresh.db, model)
          expect(await chainState(test.db)).to.deep.equal(await chainState(fresh.db))
          const journal = await journalOf(fresh.db)
          expect(await journalOf(test.db)).to.deep.equal(journal)
          for (const { db } of [test, fresh]) {
            expect(await placesOf(db)).to.equal('applied')
            expect(await db.selectFrom('settlement_mismatches').selectAll().execute()).to.deep.equal([])
          }
          const parts = JSON.stringify(journal[marketShard(recording.spec.marketId)] ?? [])
          if (/","[1-9]\d*"\]/.test(parts)) seen.pending++
        })
        .afterEach(closeAll),
      { numRuns: 12, endOnFailure: true, examples: [[[...STOPPED]]] },
    )
    expect(
      Object.entries(seen).filter(([, times]) => times === 0),
      'histories that show less prove less',
    ).to.deep.equal([])
  })

  it('when a market is locked by another transaction, it applies the other markets of the block and completes it after the lock', async () => {
    const model = new ChainModel(recording, accounts)
    // A pending withdrawal of an account in all of the markets would join them to one step.
    model.begin({ isRequested: false })
    const { db } = await database({ isRequested: false })
    model.append([0, 1, 2].map((market) => ({ kind: 'part', market })))
    const shards = recording.spec.marketId
    const [busy, ...others] = [0, 1, 2].map((number) => marketShard(shards + number))
    const settledIn = async (): Promise<string[]> => {
      const rows = await db.selectFrom('journal').select(['shard', 'row']).orderBy('shard').execute()
      return rows.filter(({ row }) => row.kind === 'part_settled').map(({ shard }) => shard)
    }
    const nextBlock = async (): Promise<number> =>
      (await db.selectFrom('chain_progress').select('next_block').executeTakeFirstOrThrow()).next_block
    const before = await nextBlock()

    let pass: Promise<boolean> | undefined
    await db.transaction().execute(async (tx) => {
      await lockShard(tx, busy as string)
      pass = follower(db, model).pass()
      await until(async () => (await settledIn()).length === others.length)
      expect(await settledIn()).to.deep.equal(others)
      expect(await nextBlock(), 'the block is not complete').to.equal(before)
      expect(await placesOf(db)).to.equal('partly applied')
    })
    expect(await pass).to.equal(true)
    expect(await settledIn()).to.deep.equal([busy, ...others])
    expect(await nextBlock()).to.equal(before + 1)
  })
})
