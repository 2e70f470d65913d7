/**
 * Prepares frequent statements: parsing and planning are most of a lookup's cost. A text that varies, for example with
 * lists of many lengths, is never prepared.
 */
import pg from 'pg'

/** Uses of a text after which its statement is prepared. */
const FREQUENT_USES = 3
/** Bounds of the prepared and of the counted statements: a connection stores a plan for each prepared one. */
const MAX_PREPARED = 200
const MAX_COUNTED = 1_000

const names = new Map<string, string>()
const uses = new Map<string, number>()

function nameOf(text: string): string | undefined {
  const known = names.get(text)
  if (known !== undefined || names.size >= MAX_PREPARED) return known
  const count = (uses.get(text) ?? 0) + 1
  if (count < FREQUENT_USES) {
    if (uses.size >= MAX_COUNTED) uses.clear()
    uses.set(text, count)
    return undefined
  }
  uses.delete(text)
  const name = `frequent-${names.size + 1}`
  names.set(text, name)
  return name
}

/** The error of a prepared `select *` whose table has changed its columns since. */
export const isOutdatedPlan = (error: unknown): boolean => {
  const { code, routine } = error as { code?: string; routine?: string }
  return code === '0A000' && routine === 'RevalidateCachedQuery'
}

/** The statement to prepare: one that has a name, or a frequent one. Null for any other. */
function preparable([statement, values]: readonly unknown[]): pg.QueryConfig | null {
  if (typeof statement === 'object') {
    const named = statement as pg.QueryConfig
    return named.name === undefined ? null : named
  }
  if (typeof statement !== 'string' || !Array.isArray(values) || values.length === 0) return null
  const name = nameOf(statement)
  return name === undefined ? null : { name, text: statement, values }
}

type Query = (...args: unknown[]) => Promise<pg.QueryResult>

const BEGINS = /^(begin|start transaction)\b/i
const ENDS = /^(commit|rollback)$/i

/**
 * A client that prepares frequent statements. After a change of the schema it prepares all of them again, and repeats the
 * refused statement unless it was part of a transaction.
 */
export class PreparingClient extends pg.Client {
  #generation = 0
  #isInTransaction = false

  override query = ((...args: unknown[]) => this.send(args)) as pg.Client['query']

  protected send(args: readonly unknown[]): Promise<pg.QueryResult> {
    this.#follow(args[0])
    const query = super.query.bind(this) as Query
    const statement = args.length > 2 ? null : preparable(args)
    if (statement === null) return query(...args)
    const isRepeated = !this.#isInTransaction
    return query({ ...statement, name: `${statement.name}.${this.#generation}` }).catch((error: unknown) => {
      if (!isOutdatedPlan(error)) throw error
      this.#generation++
      if (!isRepeated) throw error
      return this.send(args)
    })
  }

  #follow(statement: unknown): void {
    if (typeof statement !== 'string') return
    if (BEGINS.test(statement)) this.#isInTransaction = true
    else if (ENDS.test(statement)) this.#isInTransaction = false
  }
}
