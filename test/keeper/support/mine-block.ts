/** Blocks without a chain: the engine applies them to what the test has written to the tables, and takes them back. */
import type { Db } from '../../../db/client.ts'
import type { ChainFact } from '../../../domain/chain/facts.ts'
import type { BlockCommand } from '../../../domain/exchange/decide/chain/blocks.ts'
import type { Address } from '../../../domain/units.ts'
import { ask, type Engine } from '../../../keeper/engine/link/engine.ts'
import { adoptingEngine } from './adopting-engine.ts'

const BUDGET_MS = 30_000

interface MinedBlock {
  readonly hash: string
  readonly timestamp: number
  readonly fact: ChainFact
  readonly address: Address
}

class MinedBlocks {
  readonly #engine: Engine
  /** From block 1 on. */
  readonly #chain: MinedBlock[] = []
  /** A block that replaces another one has a hash of its own. */
  #hashes = 0

  constructor(db: Db) {
    this.#engine = adoptingEngine(db)
  }

  async mine(timestamp: number, fact: ChainFact, address: Address): Promise<void> {
    const number = this.#chain.length + 1
    const hash = `0x${(++this.#hashes).toString(16).padStart(64, '0')}`
    const parentHash = this.#chain.at(-1)?.hash ?? '0x0'
    const command: BlockCommand = {
      kind: 'apply_block',
      block: { number, hash, parentHash, timestamp },
      from: number,
      facts: [{ log: { logIndex: 0, txHash: hash, address }, fact }],
      silent: [],
      positions: [],
      gasUsed: new Map(),
    }
    const answer = await ask<'apply_block'>(this.#engine, command, BUDGET_MS)
    if (answer.kind !== 'done') throw new Error(`block ${number} is not applied: ${answer.kind}`)
    this.#chain.push({ hash, timestamp, fact, address })
  }

  async unminePart(): Promise<void> {
    const at = this.#chain.findLastIndex(({ fact }) => fact.kind === 'part_mined')
    if (at < 0) throw new Error('no block has a part')
    const answer = await ask<'roll_back'>(this.#engine, { kind: 'roll_back', above: at }, BUDGET_MS)
    if (answer.kind !== 'done') throw new Error(`block ${at + 1} is not taken back: ${answer.kind}`)
    const [, ...later] = this.#chain.splice(at)
    for (const { timestamp, fact, address } of later) await this.mine(timestamp, fact, address)
  }
}

const blocks = new WeakMap<Db, MinedBlocks>()

function blocksOf(db: Db): MinedBlocks {
  const known = blocks.get(db) ?? new MinedBlocks(db)
  blocks.set(db, known)
  return known
}

/** The next block has the fact, which the contract at the address has logged. */
export const mineBlock = (db: Db, timestamp: number, fact: ChainFact, address: Address): Promise<void> =>
  blocksOf(db).mine(timestamp, fact, address)

/** The block of the newest part leaves the chain. Later blocks are mined again without it. */
export const unminePart = (db: Db): Promise<void> => blocksOf(db).unminePart()
