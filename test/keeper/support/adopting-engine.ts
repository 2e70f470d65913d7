/** The engine of a test's database, which adopts what the test has written into the tables. */
import type { Db } from '../../../db/client.ts'
import { AdoptingEngine, type AdoptingOptions } from '../../support/adopting-engine.ts'

/** One per database: the blocks that an engine has applied are in no table. */
const engines = new WeakMap<Db, AdoptingEngine>()

/** `options`: of an engine that the database does not have yet. */
export function adoptingEngine(db: Db, options?: AdoptingOptions): AdoptingEngine {
  const engine = engines.get(db) ?? new AdoptingEngine(db, options)
  engines.set(db, engine)
  return engine
}
