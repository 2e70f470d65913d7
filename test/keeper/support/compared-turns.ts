/**
 * Today's jobs of a market, each run of which is compared with the decision of the engine on the same state and inputs: it must write exactly
 * the rows that the job has written. Tests import these instead of the jobs.
 */
import { expect } from 'chai'
import type { Fence } from '../../../db/fence.ts'
import type { MarketSnapshot } from '../../../domain/auction/market-snapshot.ts'
import { apply } from '../../../domain/exchange/apply.ts'
import { attemptAuction } from '../../../domain/exchange/decide/turn/auction.ts'
import { TurnContext } from '../../../domain/exchange/decide/turn/context.ts'
import { updateLiquidations } from '../../../domain/exchange/decide/turn/liquidation.ts'
import { updateMark } from '../../../domain/exchange/decide/turn/mark.ts'
import { NO_MEMORY, type TurnMemory } from '../../../domain/exchange/decide/turn/memory.ts'
import { type Decision, decideOn } from '../../../domain/exchange/decide.ts'
import type { Draft } from '../../../domain/exchange/draft.ts'
import type { Inputs } from '../../../domain/exchange/inputs.ts'
import { digestOf } from '../../../domain/exchange/state.ts'
import { marketShard } from '../../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import type { Millis } from '../../../domain/units.ts'
import * as auctions from '../../../keeper/auction/auction.ts'
import { catchUp, type MarketMemory, type MarketView } from '../../../keeper/auction/market-memory.ts'
import type { AuctionStore } from '../../../keeper/auction/ports.ts'
import * as liquidations from '../../../keeper/liquidation/liquidations.ts'
import * as marks from '../../../keeper/marks/marks.ts'
import type { StoredState } from './stored-state.ts'

/** Runs that were compared, for tests that must not pass without any. */
export const compared = { runs: 0, rows: 0 }

/** Ports of a fixture whose database is followed. */
interface Followed {
  readonly stored: StoredState
  readonly headTime: () => Millis | null
}

/** Today's memory as that of the engine. */
const memoryOf = (memory: MarketMemory, view: MarketView | null): TurnMemory => ({
  ...NO_MEMORY,
  pace: memory.pace,
  deferrals: memory.deferrals,
  standingSeq: view?.standingSeq ?? null,
  cleared: view?.cleared ?? null,
})

/** A store that notes the snapshots on which its user decides, the locked one of each transaction last. */
function noting<Store extends Pick<AuctionStore, 'snapshot' | 'transaction'>>(store: Store) {
  let last: MarketSnapshot | null = null
  const locked: MarketSnapshot[] = []
  const noted: Store = {
    ...store,
    async snapshot(spec: MarketSpec) {
      last = await store.snapshot(spec)
      return last
    },
    transaction: (spec: MarketSpec, fence: never, work: never) => {
      let snapshot: MarketSnapshot | null = null
      const run = store.transaction(spec, fence, (transaction) => {
        snapshot = transaction.snapshot
        return (work as (of: typeof transaction) => Promise<never>)(transaction)
      })
      return run.finally(() => {
        if (snapshot !== null) locked.push(snapshot)
      })
    },
  }
  return {
    store: noted,
    /** Snapshots of the attempts since the last call. */
    take(): MarketSnapshot[] {
      const taken = locked.length > 0 ? [...locked] : last === null ? [] : [last]
      locked.length = 0
      last = null
      return taken
    },
  }
}

const inputsOf = (snapshot: MarketSnapshot, memory: MarketMemory, headTime: Millis | null): Inputs => ({
  now: snapshot.now,
  report: () => snapshot.report,
  session: () => snapshot.session,
  reportRules: () => memory.rules,
  headTime,
  chainSeenAt: null,
  limits: { oracleMaxAgeMs: 0, chainMaxAgeMs: 0 },
})

type Step = (draft: Draft, inputs: Inputs, memory: TurnMemory) => { readonly memory: TurnMemory }

/** Decides on the stored state, and expects the rows that the job has written. */
class Comparison {
  readonly #stored: StoredState
  readonly #spec: MarketSpec
  readonly #decide: Step

  constructor(stored: StoredState, spec: MarketSpec, decide: Step) {
    this.#stored = stored
    this.#spec = spec
    this.#decide = decide
  }

  /** Returns the memory after the attempts. */
  async expectRows(attempts: readonly Inputs[], before: TurnMemory): Promise<TurnMemory> {
    const { state } = this.#stored
    const written = await this.#stored.newRows(marketShard(this.#spec.marketId))
    this.#stored.adoptSpec(this.#spec)
    let memory = before
    for (const inputs of attempts) {
      const decision = this.#decideOnce(inputs, memory)
      const { entries } = decision
      expect(JSON.parse(JSON.stringify(entries))).to.deep.equal(
        written.splice(0, entries.length).map(({ shard, seq, row }) => ({ shard, seq, row })),
      )
      for (const entry of entries) apply(state, entry)
      state.core.undo.clear()
      memory = decision.answer.memory
      compared.runs++
      compared.rows += entries.length
    }
    expect(written, 'rows that only the job writes').to.deep.equal([])
    return memory
  }

  #decideOnce(inputs: Inputs, memory: TurnMemory): Decision<{ readonly memory: TurnMemory }, unknown> {
    const { state } = this.#stored
    const digest = digestOf(state)
    const decider = (draft: Draft, given: Inputs) => this.#decide(draft, given, memory)
    const decision = decideOn(state, inputs, { decider, command: null })
    expect(digestOf(state), 'a decision changes no state').to.deep.equal(digest)
    expect(decideOn(state, inputs, { decider, command: null }).entries).to.deep.equal(decision.entries)
    return decision
  }
}

/**
 * Brings the job's view to the head, which it would otherwise reach in its next transaction: a job that looks at an older book takes a step
 * without need, or one turn late.
 */
async function catchUpView(
  { transaction }: Pick<AuctionStore, 'transaction'>,
  spec: MarketSpec,
  fence: Fence,
  memory: MarketMemory,
): Promise<void> {
  const { view } = memory
  if (view !== null) memory.view = await transaction(spec, fence, (locked) => catchUp(spec, locked, view))
}

export function createAuction(
  ports: auctions.AuctionPorts & Followed,
  spec: MarketSpec,
  memory: MarketMemory,
): auctions.Auction {
  const noted = noting(ports.store)
  const job = auctions.createAuction({ ...ports, store: noted.store }, spec, memory)
  const comparison = new Comparison(ports.stored, spec, (draft, inputs, before) =>
    attemptAuction(new TurnContext(draft, inputs, spec.marketId), before),
  )
  return {
    async run(fence) {
      await ports.stored.follow()
      const before = memoryOf(memory, memory.view)
      const headTime = ports.headTime()
      const batchId = await job.run(fence)
      const attempts = noted.take().map((snapshot) => inputsOf(snapshot, memory, headTime))
      const after = await comparison.expectRows(attempts, before)
      const { pace, deferrals, standingSeq, cleared } = memoryOf(memory, memory.view)
      expect({ ...after, standingSeq: after.standingSeq ?? standingSeq }).to.deep.include({
        pace,
        deferrals,
        standingSeq,
        cleared,
      })
      return batchId
    },
  }
}

export function createMarks(
  ports: marks.MarkPorts & Followed,
  spec: MarketSpec,
  memory: MarketMemory,
): marks.Marks {
  const noted = noting(ports.store)
  const job = marks.createMarks({ ...ports, store: { ...ports.store, ...noted.store } }, spec, memory)
  const comparison = new Comparison(ports.stored, spec, (draft, inputs, before) =>
    updateMark(new TurnContext(draft, inputs, spec.marketId), before),
  )
  let own: Pick<TurnMemory, 'averages' | 'pricesCheckedAt' | 'hasPublished'> = NO_MEMORY
  return {
    async update(fence) {
      await catchUpView(ports.store, spec, fence, memory)
      await ports.stored.follow()
      const before = memoryOf(memory, memory.view)
      const headTime = ports.headTime()
      await job.update(fence)
      const attempts = noted.take().map((snapshot) => inputsOf(snapshot, memory, headTime))
      const { averages, pricesCheckedAt, hasPublished } = await comparison.expectRows(attempts, {
        ...before,
        ...own,
      })
      own = { averages, pricesCheckedAt, hasPublished }
    },
  }
}

export function createLiquidations(
  ports: liquidations.LiquidationPorts & Followed,
  spec: MarketSpec,
  memory: MarketMemory,
): liquidations.Liquidations {
  const noted = noting(ports.liquidations)
  const job = liquidations.createLiquidations({ ...ports, liquidations: noted.store }, spec, memory)
  const comparison = new Comparison(ports.stored, spec, (draft, inputs, before) =>
    updateLiquidations(new TurnContext(draft, inputs, spec.marketId), before, (order) =>
      ports.hashOrder(order, spec),
    ),
  )
  let lastLiquidation = NO_MEMORY.lastLiquidation
  return {
    async update(fence) {
      await catchUpView(ports.liquidations, spec, fence, memory)
      await ports.stored.follow()
      const before = memoryOf(memory, memory.view)
      const headTime = ports.headTime()
      await job.update(fence)
      const attempts = noted.take().map((snapshot) => inputsOf(snapshot, memory, headTime))
      const after = await comparison.expectRows(attempts, { ...before, lastLiquidation })
      lastLiquidation = after.lastLiquidation
    },
  }
}
