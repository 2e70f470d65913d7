/**
 * Blocks that the engine applies in slices reach the state of a fresh database, wherever the engine ends, whatever the chain replaces, and however many
 * followers there are.
 */
import { expect } from 'chai'
import fc from 'fast-check'
import { after, before, describe, it } from 'mocha'
import type { Db } from '../../../db/client.ts'
import { tipOf } from '../../../domain/exchange/decide/chain/blocks.ts'
import { ACCOUNTS_SHARD, marketShard } from '../../../domain/journal/journal-row.ts'
import type { Address } from '../../../domain/units.ts'
import { Follower } from '../../../indexer/ingest/follow.ts'
import type { ChainLog } from '../../../indexer/ports.ts'
import { EngineError } from '../../../keeper/engine/link/engine.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import { LocalEngine } from '../../support/local-engine.ts'
import { createShard } from '../../support/rows/journal.ts'
import { listMarket } from '../../support/rows/markets.ts'
import { chainState } from '../support/audit.ts'
import { freshDatabase } from '../support/database.ts'
import { CHAIN_ID, type ExchangeDatabase, followPorts, withEngine } from '../support/exchange-fixture.ts'
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

type Item =
  | { readonly kind: 'part'; readonly market: number }
  | { readonly kind: 'deposit' | 'request' | 'payout'; readonly account: number; readonly tokens: number }

type Action =
  | { readonly kind: 'block'; readonly items: readonly Item[] }
  | { readonly kind: 'fork'; readonly depth: number }
  | { readonly kind: 'pass'; readonly steps: number; readonly followers: number }

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

/** Passes of followers at once, during which the engine ends after so many steps. */
const pass = fc.record({
  kind: fc.constant('pass' as const),
  steps: fc.integer({ min: 1, max: 14 }),
  followers: fc.integer({ min: 1, max: 2 }),
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

/** Blocks that are cut after one slice or two, and replaced: whatever else happens, some are open, and some are taken back in part. */
const CUT: readonly Action[] = [1, 2, 1, 2].flatMap((steps) => [
  {
    kind: 'block',
    items: [
      { kind: 'deposit', account: 1, tokens: 1 },
      { kind: 'deposit', account: 2, tokens: 1 },
      { kind: 'part', market: 0 },
    ],
  },
  { kind: 'pass', steps, followers: 1 },
  { kind: 'fork', depth: 1 },
  { kind: 'pass', steps: 1, followers: 1 },
])

type MinedLog = Pick<ChainLog, 'txHash' | 'address' | 'topics' | 'data'>

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

  /** The accounts' deposits, and one account's request that takes its whole free balance. */
  begin(): void {
    const { timestamp, deposits } = this.#recording
    this.chain.append(timestamp, [])
    this.chain.append(timestamp, deposits)
    const whole = { kind: 'request' as const, account: 0, tokens: 1_000_000 }
    this.chain.append(timestamp, [this.#logOf(whole, 0)])
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

describe('blocks that are applied in slices', function () {
  this.timeout(280_000)
  let recording: Recording
  let accounts: readonly Address[]
  const open: ExchangeDatabase[] = []
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

  const follower = (test: ExchangeDatabase, { chain }: ChainModel): Follower =>
    new Follower(followPorts(test, chain), recording.options)

  /** A database that has the chain's first blocks and has matched all parts. */
  async function database(sliceAccounts: number): Promise<ExchangeDatabase> {
    const first = new ChainModel(recording, accounts)
    first.begin()
    const test = await freshDatabase()
    await createShard(test.db, ACCOUNTS_SHARD)
    const markets = Array.from({ length: MARKETS }, (_, number) => copyOf(recording.spec, number))
    for (const market of markets) await listMarket(test.db, market)
    const exchange = withEngine(test, await LocalEngine.over(test, { chainRules: { sliceAccounts } }))
    open.push(exchange)
    await follower(exchange, first).pass()
    for (const { part } of recording.parts) {
      for (const [number, market] of markets.entries()) {
        const relayer = {
          address: `0xrelayer${number}`,
          chain_id: CHAIN_ID,
          lane: `m${number}`,
          next_nonce: 0,
        }
        await matchPart(exchange, copyPart(part, market), txHashOf(number, part.actionId), relayer)
      }
    }
    return exchange
  }

  async function reachHead(test: ExchangeDatabase, model: ChainModel): Promise<void> {
    const both = [follower(test, model), follower(test, model)]
    for (let passes = 0; passes < 30; passes++) {
      const reached = await Promise.all(both.map((each) => each.pass()))
      if (reached.every(Boolean)) return
    }
    throw new Error('the head was not reached in 30 passes')
  }

  /** Passes until the engine ends. The next one starts from the journal. */
  async function cutPass(
    test: ExchangeDatabase,
    model: ChainModel,
    { steps, followers }: Extract<Action, { readonly kind: 'pass' }>,
  ): Promise<void> {
    test.engine.stepsLeft = steps
    const passes = Array.from({ length: followers }, () => follower(test, model).pass())
    for (const outcome of await Promise.allSettled(passes))
      if (outcome.status === 'rejected' && !(outcome.reason instanceof EngineError)) throw outcome.reason
    await test.engine.restart()
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

  /** How far the engine has come with its newest block. */
  const stageOf = ({ engine }: ExchangeDatabase): 'complete' | 'open' | 'leaving' =>
    tipOf(engine.state)?.status ?? 'complete'

  it('when the engine ends anywhere and the chain forks, it reaches the state of a fresh database', async () => {
    const seen = { open: 0, leaving: 0, complete: 0, forkedOpen: 0, pending: 0 }
    await fc.assert(
      fc
        .asyncProperty(actions, async (all) => {
          const model = new ChainModel(recording, accounts)
          model.begin()
          // Each fact is a slice of its own.
          const test = await database(1)
          for (const action of all) {
            if (action.kind === 'block') model.append(action.items)
            if (action.kind === 'fork') {
              if (stageOf(test) !== 'complete') seen.forkedOpen++
              model.fork(action.depth)
            }
            if (action.kind !== 'pass') continue
            await cutPass(test, model, action)
            seen[stageOf(test)]++
          }
          await reachHead(test, model)
          const fresh = await database(1_000)
          await reachHead(fresh, model)
          expect(await chainState(test.db)).to.deep.equal(await chainState(fresh.db))
          const journal = await journalOf(fresh.db)
          expect(await journalOf(test.db)).to.deep.equal(journal)
          for (const each of [test, fresh]) {
            expect(stageOf(each)).to.equal('complete')
            expect(await each.db.selectFrom('settlement_mismatches').selectAll().execute()).to.deep.equal([])
          }
          const parts = JSON.stringify(journal[marketShard(recording.spec.marketId)] ?? [])
          if (/","[1-9]\d*"\]/.test(parts)) seen.pending++
        })
        .afterEach(closeAll),
      { numRuns: 12, endOnFailure: true, examples: [[[...CUT]]] },
    )
    expect(
      Object.entries(seen).filter(([, times]) => times === 0),
      'histories that show less prove less',
    ).to.deep.equal([])
  })
})
