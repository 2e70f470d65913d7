/** The engine of a test whose stores write the tables by themselves: it adopts what they have written. */
import type { Db } from '../../../db/client.ts'
import { ask, type Engine } from '../../../keeper/engine/link/engine.ts'
import { AdoptingEngine } from '../../api/support/adopting-engine.ts'

/** One per database: the blocks that an engine has applied are in no table. */
const engines = new WeakMap<Db, AdoptingEngine>()

export function adoptingEngine(db: Db): Engine {
  const known = engines.get(db) ?? new AdoptingEngine(db)
  engines.set(db, known)
  const engine: Engine = known
  return { submit: (command, budgetMs) => engine.submit(command, budgetMs), inform: async () => {} }
}

/** The engine adopts what a test has inserted without a row, before later rows change it. */
export async function adoptInserted(db: Db): Promise<void> {
  // Without a block there is nothing to confirm.
  const command = { kind: 'confirm_blocks', number: 0, timestamp: 0 } as const
  await ask<'confirm_blocks'>(adoptingEngine(db), command, 30_000)
}
