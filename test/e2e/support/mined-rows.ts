/** Applies the rows of blocks to the model: mined parts, positions that moved outside batches, and both when their block has left the chain. */
import { isDeepStrictEqual } from 'node:util'
import type { Deleverage, InheritPosition } from '../../../domain/actions/action.ts'
import { fromStoredPayload } from '../../../domain/actions/stored-action.ts'
import type { ActionDropped } from '../../../domain/journal/action-rows.ts'
import type { PartSettled } from '../../../domain/journal/batch-rows.ts'
import type { PositionsMoved } from '../../../domain/journal/journal-row.ts'
import { FLAT, type Position } from '../../../domain/positions/position.ts'
import type { Address, FundingIndex, Millis } from '../../../domain/units.ts'
import {
  deleveraged,
  type InheritTerms,
  inherited,
  type Positions,
} from '../../support/legal-deleveraging.ts'
import type { MarketRecord } from './market-record.ts'
import { movedPosition, signedWei } from './settled-rows.ts'
import type { Touch } from './single-actions.ts'

export interface MinedRowsOptions {
  /** Free balances by account, changed in place. */
  readonly free: Map<number, bigint>
  readonly addresses: ReadonlyMap<number, Address>
  readonly count: (name: string) => void
}

const sizesOf = (positions: ReadonlyMap<Address, Position>) =>
  new Map([...positions].map(([account, { size }]) => [account, size]))

export class MinedRows {
  readonly #options: MinedRowsOptions
  /** Batches and actions whose block has left the chain, until they are mined again or end: their credits are missing. */
  readonly #retrying = new Set<string>()
  /** Of each legal deleveraging in a queue, by `<market> <number in the queue>`. */
  indexes: ReadonlyMap<string, FundingIndex> = new Map()

  constructor(options: MinedRowsOptions) {
    this.#options = options
  }

  get areCreditsMissing(): boolean {
    return this.#retrying.size > 0
  }

  credit(account: number, delta: bigint): void {
    const { free } = this.#options
    free.set(account, (free.get(account) ?? 0n) + delta)
  }

  void({ spec }: MarketRecord, batchId: number): void {
    this.#retrying.delete(`${spec.marketId} batch ${batchId}`)
  }

  /** Notes whether the credits of a batch or an action are missing. */
  #note(name: string, rollback: boolean): void {
    if (rollback) this.#retrying.add(name)
    else this.#retrying.delete(name)
  }

  /** A part is mined, or its block has left the chain: then the newest mined batch waits again. */
  settle({ model, mined, spec }: MarketRecord, row: PartSettled): string[] {
    const batch = row.rollback ? model.mined.at(-1) : model.queue[0]
    const [expected, found] = [batch, { id: row.batch_id, price: row.price }].map(
      (one) => `batch ${one?.id} at ${one?.price}`,
    )
    const does = row.rollback ? 'is rolled back' : 'is mined'
    const problems = found === expected ? [] : [`${found} ${does}; the model waits for ${expected}`]
    if (row.parts !== 1) problems.push('the part is one of several, which this run must not have')
    for (const { user_id, free_delta, from_pending } of row.fills)
      this.credit(user_id, signedWei(row, free_delta) + signedWei(row, from_pending))
    const before = new Map(mined)
    for (const change of row.positions)
      mined.set(change.user_id, movedPosition(mined.get(change.user_id), change, row))
    const { free } = this.#options
    const after = { free, mined: new Map(mined) }
    this.#note(`${spec.marketId} batch ${row.batch_id}`, row.rollback)
    if (row.rollback) {
      this.#options.count('rolled back')
      model.unmine(after)
      return problems
    }
    model.observe({ free, mined: before })
    model.mine(after)
    return problems
  }

  /** Positions moved outside batches, or their block has left the chain. */
  move(market: MarketRecord, row: PositionsMoved): string[] {
    const { mined, moves, spec } = market
    const action = row.action_id as number
    this.#options.count(`${row.cause}${row.rollback ? ', rolled back' : ''}`)
    this.#note(`${spec.marketId} action ${action}`, row.rollback)
    const changes = row.positions.map((change) => {
      const before = mined.get(change.user_id) ?? FLAT
      return { account: change.user_id, before, after: movedPosition(before, change, row) }
    })
    const problems = row.rollback ? [] : this.#unexplained(market, row)
    for (const { user_id, free_delta } of row.balances) this.credit(user_id, signedWei(row, free_delta))
    for (const { account, after } of changes) mined.set(account, after)
    if (row.rollback) moves.rollBack(action)
    else moves.apply(action, changes, row.as_of as number)
    return problems
  }

  /** One line if the contract's rules do not lead from the mined positions to those of the row. */
  #unexplained({ mined, queued, spec }: MarketRecord, row: PositionsMoved): string[] {
    const [queueNo, action] = [...queued].find(([, { action_id }]) => action_id === row.action_id) ?? []
    if (action === undefined) return [`no queued action moves positions as action ${row.action_id}`]
    const addressOf = (user: number) => this.#options.addresses.get(user) as Address
    const before = new Map([...mined].map(([user, position]) => [addressOf(user), position]))
    // The actions of the keeper are not in `indexes`.
    const index =
      this.indexes.get(`${spec.marketId} ${queueNo}`) ?? (BigInt(row.funding_index ?? 0) as FundingIndex)
    const expected = this.#expected({ spec, index }, before, action)
    const found = new Map(
      row.positions.map((change) => [
        addressOf(change.user_id),
        movedPosition(mined.get(change.user_id), change, row),
      ]),
    )
    const paid = new Map(
      row.balances.map(({ user_id, free_delta }) => [addressOf(user_id), BigInt(free_delta)]),
    )
    const payouts = new Map([...expected.payouts].filter(([, payout]) => payout !== 0n))
    // With a rate an action that is dropped before this one can have changed the index.
    const isSame =
      index === 0n
        ? isDeepStrictEqual([found, paid], [expected.positions, payouts])
        : isDeepStrictEqual(sizesOf(found), sizesOf(expected.positions))
    return isSame ? [] : [`action ${row.action_id} moves positions other than its rules say`]
  }

  /** The positions and the changes of free balances by the contract's rules. */
  #expected(terms: Omit<InheritTerms, 'oracle'>, before: Positions, { kind, payload }: Touch) {
    if (kind === 'deleverage') {
      const { account, legs, report } = fromStoredPayload(kind, 0 as Millis, payload) as Deleverage
      return deleveraged({ ...terms, oracle: report.price }, before, { account, legs })
    }
    const action = fromStoredPayload('inherit_position', 0 as Millis, payload) as InheritPosition
    const [user] = [...this.#options.addresses].find(([, address]) => address === action.backstop) ?? []
    return inherited({ ...terms, oracle: action.report.price }, before, {
      ...{ account: action.account, backstop: action.backstop },
      // Before the row's own change.
      free: this.#options.free.get(user ?? 0) ?? 0n,
    })
  }

  /** Its credits will not come back, and batches that were matched on its positions are matched without them. */
  drop(market: MarketRecord, { action, queue_no, reason, rematched }: ActionDropped): string[] {
    const { spec, queued, moves, mined } = market
    this.#options.count(`dropped ${action}, ${reason.split('(')[0]}`)
    this.#retrying.delete(`${spec.marketId} action ${queued.get(queue_no)?.action_id}`)
    moves.rematch(rematched, mined)
    const isLegal = this.indexes.has(`${spec.marketId} ${queue_no}`)
    return !isLegal || isFaultOfChain(reason) || reason === BEHIND_VOID
      ? []
      : [`a legal deleveraging is dropped: ${reason}`]
  }
}

const BEHIND_VOID = 'behind a voided batch'

/** Reasons that no order and no action is to blame for. */
export const isFaultOfChain = (why: string): boolean =>
  ['not mined in time', 'nonce used by a foreign transaction'].includes(why) || why.startsWith('AsOfStale(')
