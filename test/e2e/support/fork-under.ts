/** Forks the chain under what the indexer has ingested, and follows it until the indexer has undone it, and until it is mined again. */

import type { PartSettled } from '../../../domain/journal/batch-rows.ts'
import { marketShard, type PositionsMoved } from '../../../domain/journal/journal-row.ts'
import type { Stack } from '../../../stack/stack.ts'
import { replaceFrom } from '../../support/chain-faults.ts'
import { waitFor } from '../../support/patience.ts'

const WAIT = { budgetMs: 60_000 }

/** A row about a transaction of the market that has changed positions. */
export type MinedRow = PartSettled | PositionsMoved

export class MinedRows {
  readonly #stack: Stack
  readonly #marketId: number
  readonly #isMeant: (row: MinedRow) => boolean

  /** The rows of the market's journal that `isMeant` selects, without regard to their rollbacks. */
  constructor(stack: Stack, marketId: number, isMeant: (row: MinedRow) => boolean) {
    this.#stack = stack
    this.#marketId = marketId
    this.#isMeant = isMeant
  }

  /** In their order, also those that forks have undone, and the rows that undo them. */
  async all(): Promise<MinedRow[]> {
    const rows = await this.#stack.db
      .selectFrom('journal')
      .select('row')
      .where('shard', '=', marketShard(this.#marketId))
      .orderBy('seq')
      .execute()
    return rows.flatMap(({ row }) =>
      (row.kind === 'part_settled' || row.kind === 'positions_moved') && this.#isMeant(row) ? [row] : [],
    )
  }

  /** Waits until the last of the rows is one of the chain. Returns it. */
  async mined(): Promise<MinedRow> {
    const rows = await waitFor(
      () => this.all(),
      (found) => found.at(-1)?.rollback === false,
      WAIT,
    )
    return rows.at(-1) as MinedRow
  }

  /** Replaces the blocks from that of the last row on by empty ones, and waits until the indexer has undone it. Returns the row. */
  async fork(): Promise<MinedRow> {
    const row = await this.mined()
    const { provider, db } = this.#stack
    const before = (await this.all()).length
    await replaceFrom(provider, row.block)
    await waitFor(
      () => this.all(),
      (rows) => rows.slice(before).some(({ rollback, tx_hash }) => rollback && tx_hash === row.tx_hash),
      WAIT,
    )
    const replaced = await provider.getBlockNumber()
    await waitFor(
      () => db.selectFrom('chain_progress').select('next_block').executeTakeFirstOrThrow(),
      ({ next_block }) => next_block > replaced,
      WAIT,
    )
    return row
  }
}
