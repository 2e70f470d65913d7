/**
 * Statements that come again are prepared: Postgres parses and plans them once per connection, which for a look-up is most of what it costs.
 * A text that is made up anew each time (lists of many lengths, say) never gets a name.
 */
import pg from 'pg'

/** Seen so often, a statement gets a name. */
const OFTEN = 3
/** Most statements with a name, and most that are counted: a connection keeps a plan for each name. */
const MOST_NAMED = 200
const MOST_COUNTED = 1_000

const names = new Map<string, string>()
const uses = new Map<string, number>()

function nameOf(text: string): string | undefined {
  const known = names.get(text)
  if (known !== undefined || names.size >= MOST_NAMED) return known
  const count = (uses.get(text) ?? 0) + 1
  if (count < OFTEN) {
    if (uses.size >= MOST_COUNTED) uses.clear()
    uses.set(text, count)
    return undefined
  }
  uses.delete(text)
  const name = `often-${names.size + 1}`
  names.set(text, name)
  return name
}

/** Of a prepared `select *` whose table has got another column since. */
export const isOutdatedPlan = (error: unknown): boolean => {
  const { code, routine } = error as { code?: string; routine?: string }
  return code === '0A000' && routine === 'RevalidateCachedQuery'
}

/** What to prepare: a statement that has a name already, or one that comes often. */
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

/** A client that prepares what it is asked often. After a change of the schema under it, it prepares everything anew. */
export class PreparingClient extends pg.Client {
  #generation = 0

  override query = ((...args: unknown[]) => {
    const ask = super.query.bind(this) as Query
    const statement = args.length > 2 ? null : preparable(args)
    if (statement === null) return ask(...args)
    const answer = ask({ ...statement, name: `${statement.name}.${this.#generation}` })
    answer.catch((error) => {
      if (isOutdatedPlan(error)) this.#generation++
    })
    return answer
  }) as pg.Client['query']
}
