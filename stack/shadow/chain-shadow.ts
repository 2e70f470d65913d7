/**
 * Decides in memory what the indexer has just written of the chain, and compares the rows. The state before is the fold of the journal. Requires that no
 * other writer appends between `begin` and `compare`.
 */
import { isDeepStrictEqual } from 'node:util'
import { sql } from 'kysely'
import type { Db } from '../../db/client.ts'
import { readRows } from '../../db/journal.ts'
import { apply, type Entry, marketIdOf } from '../../domain/exchange/apply.ts'
import {
  type BlockCommand,
  type ChainAnswer,
  type ChainCommand,
  type ChainRules,
  decideChain,
} from '../../domain/exchange/decide/chain/blocks.ts'
import type { ReadPosition } from '../../domain/exchange/decide/chain/fact-context.ts'
import { decideOn } from '../../domain/exchange/decide.ts'
import type { Inputs } from '../../domain/exchange/inputs.ts'
import { digestOf, type ExchangeState } from '../../domain/exchange/state.ts'
import { ACCOUNTS_SHARD, CHAIN_SHARD, type JournalRow } from '../../domain/journal/journal-row.ts'
import type { Address, Millis } from '../../domain/units.ts'
import type { Contracts } from '../../indexer/ingest/contracts.ts'
import { decodeLog } from '../../indexer/ingest/decode/decode-log.ts'
import type { Chain, ChainLog } from '../../indexer/ports.ts'
import { ShadowRun } from './shadow-run.ts'

const PAGE = 5_000
const MOST_STEPS = 10_000

interface StoredBlock {
  readonly number: number
  readonly hash: string
  readonly parent_hash: string
  readonly timestamp: number
}

export interface ChainShadowOptions {
  readonly db: Db
  readonly chain: Pick<Chain, 'position'>
  readonly contracts: () => Promise<Contracts>
  readonly confirmations: number
}

export class ChainShadow {
  readonly #options: ChainShadowOptions
  readonly #shadow: ShadowRun
  readonly #rules: ChainRules
  #blocks: readonly StoredBlock[] = []
  #nextBlock = 0
  readonly #found = new Set<string>()
  /** Nothing is compared any more. */
  isStopped = false
  isBusy = false
  /** Blocks whose rows were compared. */
  blocks = 0
  /** Rows that were compared. */
  rows = 0

  constructor(options: ChainShadowOptions, { sliceAccounts = 3 }: Partial<ChainRules> = {}) {
    this.#options = options
    this.#shadow = new ShadowRun(options.db)
    this.#rules = { confirmations: options.confirmations, depth: 1_000_000, sliceAccounts, emptyBlocksMs: 0 }
  }

  get state() {
    return this.#shadow.state
  }

  /** Before a pass of the indexer: folds what the journal has, which other writers have appended. */
  async begin(): Promise<void> {
    if (this.isStopped) return
    if (this.state.core.undo.mark === 0) await this.#shadow.adoptUsers()
    await this.#follow((entries) => {
      for (const entry of entries) apply(this.state, entry)
    })
    const { blocks, nextBlock } = await this.#stored()
    this.#blocks = blocks
    this.#nextBlock = nextBlock
  }

  /** Repeats in the state what was written to the tables without a row of the journal. */
  async edit(change: (state: ExchangeState) => void): Promise<void> {
    await this.begin()
    change(this.state)
    this.state.core.undo.clear()
  }

  /** After the pass: one line per difference. `isHead`: it has confirmed blocks below the head. */
  async compare(head: { readonly number: number; readonly timestamp: number } | null): Promise<string[]> {
    const expected: Entry[] = []
    await this.#follow((entries) => expected.push(...entries))
    const { blocks, nextBlock } = await this.#stored()
    const decided = await this.#decidePass(blocks, nextBlock, head)
    return [...differences(expected, decided), ...(await this.#mismatches(decided))]
  }

  async #decidePass(
    blocks: readonly StoredBlock[],
    nextBlock: number,
    head: { readonly number: number; readonly timestamp: number } | null,
  ): Promise<Entry[]> {
    const entries: Entry[] = []
    const hashes = new Set(blocks.map(({ hash }) => hash))
    const known = this.#blocks.filter(({ hash }) => hashes.has(hash))
    const above = known.at(-1)?.number ?? Math.min(...this.#blocks.map(({ number }) => number - 1))
    if (known.length < this.#blocks.length) await this.#decide({ kind: 'roll_back', above }, entries)
    let from =
      known.length < this.#blocks.length ? (this.state.chain.get('chain')?.next_block ?? 0) : this.#nextBlock
    for (const block of blocks.slice(known.length)) {
      if (block.number >= nextBlock) break
      await this.#decide(await this.#commandOf(block, from), entries)
      this.blocks++
      from = block.number + 1
    }
    if (head !== null) await this.#decide({ kind: 'confirm_blocks', ...head }, entries)
    return entries
  }

  async #commandOf(block: StoredBlock, from: number): Promise<BlockCommand> {
    const { db, contracts } = this.#options
    const known = await contracts()
    const logs = await db
      .selectFrom('chain_logs')
      .selectAll()
      .where('block', '=', block.number)
      .orderBy('log_index')
      .execute()
    const facts = logs.map((row) => {
      const log: ChainLog = {
        block: block.number,
        blockHash: block.hash,
        logIndex: row.log_index,
        txHash: row.tx_hash,
        address: row.address as Address,
        topics: row.topics,
        data: row.data,
      }
      return { log, fact: decodeLog(log, known) }
    })
    const used = await db
      .selectFrom('relayer_transactions')
      .select(['tx_hash', 'gas_used'])
      .where('gas_used', 'is not', null)
      .execute()
    const { number, hash, parent_hash: parentHash, timestamp } = block
    return {
      kind: 'apply_block',
      block: { number, hash, parentHash, timestamp },
      from,
      facts,
      silent: await this.#silent(block, new Set(logs.map(({ tx_hash }) => tx_hash))),
      positions: [],
      gasUsed: new Map(used.map(({ tx_hash, gas_used }) => [tx_hash, gas_used as number])),
    }
  }

  /** Mismatches of transactions without an event. */
  async #silent({ number }: StoredBlock, withEvents: ReadonlySet<string>): Promise<BlockCommand['silent']> {
    const rows = await this.#options.db
      .selectFrom('settlement_mismatches')
      .selectAll()
      .where('block', '=', number)
      .execute()
    return rows
      .filter(({ tx_hash }) => !withEvents.has(tx_hash))
      .map((row) => ({
        marketId: row.market_id,
        txHash: row.tx_hash,
        batchId: row.batch_id,
        part: row.part,
        kind: row.failure_kind as BlockCommand['silent'][number]['kind'],
        reason: row.failure_reason,
      }))
  }

  /** Decides until the work is done, in slices, and applies the rows. */
  async #decide(command: ChainCommand, entries: Entry[]): Promise<void> {
    let next: ChainCommand = command
    for (let step = 0; step < MOST_STEPS; step++) {
      const before = digestOf(this.state)
      const decision = decideOn<ChainCommand, ChainAnswer, ChainCommand>(this.state, this.#inputs, {
        decider: (draft, inputs, wanted) => decideChain(this.#rules, draft, inputs, wanted),
        command: next,
      })
      if (!isDeepStrictEqual(digestOf(this.state), before))
        throw new Error('a decision has changed the state')
      for (const entry of decision.entries) {
        // As stored.
        const stored = JSON.parse(JSON.stringify(entry)) as Entry
        apply(this.state, stored)
        entries.push(stored)
      }
      this.state.core.undo.clear()
      const { answer } = decision
      if (answer.kind === 'done') return
      if (answer.kind === 'positions_needed' && next.kind === 'apply_block')
        next = { ...next, positions: [...next.positions, ...(await this.#read(next, answer))] }
      else if (decision.next === null) throw new Error(`the engine answers ${JSON.stringify(answer)}`)
      else next = decision.next
    }
    throw new Error(`a command is done within ${MOST_STEPS} steps`)
  }

  async #read(
    { block, facts }: BlockCommand,
    { logIndex, accounts }: Extract<ChainAnswer, { kind: 'positions_needed' }>,
  ): Promise<ReadPosition[]> {
    const trader = facts.find(({ log }) => log.logIndex === logIndex)?.log.address as Address
    return Promise.all(
      accounts.map(async (account) => ({
        logIndex,
        account,
        position: await this.#options.chain.position(trader, account, block.number),
      })),
    )
  }

  readonly #inputs: Inputs = {
    now: Date.now() as Millis,
    report: () => null,
    session: () => null,
    reportRules: () => null,
    headTime: null,
    chainSeenAt: null,
    limits: { oracleMaxAgeMs: 0, chainMaxAgeMs: 0 },
  }

  /** Mismatches that only one of the two has found. The tables keep those of blocks that have left the chain. */
  async #mismatches(decided: readonly Entry[]): Promise<string[]> {
    for (const { row } of decided)
      if (row.kind === 'settlement_mismatched') {
        const { market_id, tx_hash, batch_id, part, failure_kind, failure_reason } = row
        this.#found.add(JSON.stringify([market_id, tx_hash, batch_id, part, failure_kind, failure_reason]))
      }
    const rows = await this.#options.db.selectFrom('settlement_mismatches').selectAll().execute()
    const stored = new Set(
      rows.map(({ market_id, tx_hash, batch_id, part, failure_kind, failure_reason }) =>
        JSON.stringify([market_id, tx_hash, batch_id, part, failure_kind, failure_reason]),
      ),
    )
    const one = [...stored, ...this.#found].filter((key) => !stored.has(key) || !this.#found.has(key))
    return one.map((key) => `a mismatch of one side only: ${key}`)
  }

  async #stored(): Promise<{ blocks: StoredBlock[]; nextBlock: number }> {
    const { db } = this.#options
    const blocks = await db.selectFrom('chain_blocks').selectAll().orderBy('number').execute()
    const progress = await db.selectFrom('chain_progress').select('next_block').executeTakeFirst()
    return { blocks, nextBlock: progress?.next_block ?? 0 }
  }

  /** The rows behind the state's heads, those of the accounts first. */
  async #follow(use: (entries: readonly Entry[]) => void): Promise<void> {
    const { rows: shards } = await sql<{ shard: string }>`
      select shard from shards order by shard <> ${ACCOUNTS_SHARD}, shard
    `.execute(this.#options.db)
    const found: Entry[] = []
    for (const { shard } of shards) {
      let after = this.state.heads.get(marketIdOf(shard))?.seq ?? 0
      for (;;) {
        const rows = await readRows(this.#options.db, shard, after, PAGE)
        for (const { seq, row } of rows) found.push({ shard, seq, row })
        after = (rows.at(-1)?.seq ?? after) as typeof after
        if (rows.length < PAGE) break
      }
    }
    this.rows += found.length
    use(found)
    this.state.core.undo.clear()
  }
}

/** One line per shard whose rows differ. */
function differences(expected: readonly Entry[], decided: readonly Entry[]): string[] {
  const found: string[] = []
  const byShard = (entries: readonly Entry[]) =>
    Map.groupBy(
      entries.filter(({ shard }) => shard !== CHAIN_SHARD),
      ({ shard }) => shard,
    )
  const [wanted, received] = [byShard(expected), byShard(decided)]
  for (const shard of new Set([...wanted.keys(), ...received.keys()])) {
    const [before, after] = [wanted.get(shard) ?? [], received.get(shard) ?? []]
    for (let at = 0; at < Math.max(before.length, after.length); at++) {
      const [a, b] = [before[at]?.row, after[at]?.row]
      if (isDeepStrictEqual(a, b)) continue
      found.push(`${shard} row ${at + 1}: the indexer has ${textOf(a)}, the engine ${textOf(b)}`)
      break
    }
  }
  return found
}

const textOf = (row: JournalRow | undefined): string => (row === undefined ? 'none' : JSON.stringify(row))
