/** The engine of a test whose stores write the tables by themselves: it adopts what they have written. */
import type { Db } from '../../../db/client.ts'
import type { Engine } from '../../../keeper/engine/link/engine.ts'
import { AdoptingEngine } from '../../api/support/adopting-engine.ts'

/** One per database: the blocks that an engine has applied are in no table. */
const engines = new WeakMap<Db, AdoptingEngine>()

export function adoptingEngine(db: Db): Engine {
  const engine = engines.get(db) ?? new AdoptingEngine(db)
  engines.set(db, engine)
  return { submit: (command) => engine.submit(command), inform: async () => {} }
}
