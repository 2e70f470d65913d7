/** Describes one table of the read model and builds the SQL clauses that write rows into it. The tables stand in `tables/`. */

type PgType = 'bigint' | 'integer' | 'numeric' | 'text' | 'boolean' | 'jsonb'

/** A table of the `read` schema: its columns, and the columns that identify a row. */
interface TableShape<Row> {
  readonly table: string
  readonly key: readonly (keyof Row & string)[]
  readonly columns: { readonly [Column in keyof Row]: PgType }
  /** See WriteClause. */
  readonly isShared?: true
}

/** One clause of the statement that writes a chunk. Rows are passed as one array per column: Postgres parses arrays in half the time of JSON. */
export interface WriteClause {
  readonly name: string
  /**
   * `first` is the number of the clause's first parameter. `condition` is true, but makes a shared clause wait for the shared clauses
   * before it.
   */
  readonly text: (first: number, condition: string) => string
  /** As Postgres parses them. The clause is left out if each of them is an empty array. */
  readonly parameters: readonly string[]
  /** True if several shards write the same rows: all chunks must lock them in one order. */
  readonly isShared?: true
}

/** The ways to write rows into a table. */
export interface ReadTable<Row> {
  /** Inserts rows that do not exist. `changed` replaces the value of a column by an SQL expression. */
  readonly insert: (
    rows: readonly Row[],
    changed?: { readonly [Column in keyof Row]?: string },
  ) => WriteClause
  /** Inserts rows; where the key exists, sets every other column. */
  readonly replace: (rows: readonly Row[]) => WriteClause
  /** Inserts rows; where the key exists, adds to every other column. Other clauses can read the rows after the change. */
  readonly add: (rows: readonly Row[]) => WriteClause
  /** Sets some columns of existing rows, which `by` finds in place of the key. No two clauses of a statement may change the same row. */
  readonly update: <Column extends keyof Row & string>(
    columns: readonly Column[],
    by?: readonly (keyof Row & string)[],
  ) => (rows: readonly Row[]) => WriteClause
}

/** One element of a Postgres array literal. */
export function arrayElement(value: unknown): string {
  if (value === null) return 'NULL'
  if (typeof value === 'string') return `"${/["\\]/.test(value) ? value.replace(/["\\]/g, '\\$&') : value}"`
  return String(value)
}

/** A control character, which JSON escapes. */
const SEPARATOR = '\x1f'

/** Texts of JSON as one parameter: Postgres reads the elements of an array literal character by character. Null is the empty text. */
export const joinTexts = (texts: readonly string[]): string => texts.join(SEPARATOR)
export const splitTexts = (parameter: string): string =>
  `string_to_array(${parameter}, E'\\x${SEPARATOR.charCodeAt(0).toString(16)}', '')`

export function tableOf<Row>({ table, key, columns: types, ...shared }: TableShape<Row>): ReadTable<Row> {
  const names = Object.keys(types) as (keyof Row & string)[]
  const quoted = (name: string): string => `"${name}"`
  const list = names.map(quoted).join()
  const others = names.filter((name) => !key.includes(name)).map(quoted)
  const arrayOf = (rows: readonly Row[], name: keyof Row & string): string =>
    types[name] === 'jsonb' && rows.length > 0
      ? joinTexts(rows.map((row) => (row[name] === null ? '' : JSON.stringify(row[name]))))
      : `{${rows.map((row) => arrayElement(row[name])).join()}}`
  const arraysOf = (rows: readonly Row[], columns: readonly (keyof Row & string)[]): string[] =>
    columns.map((name) => arrayOf(rows, name))
  const inputOf = (first: number, columns: readonly (keyof Row & string)[]): string => {
    const arrays = columns.map((name, at) => {
      const parameter = `$${first + at}`
      return types[name] === 'jsonb' ? `${splitTexts(parameter)}::jsonb[]` : `${parameter}::${types[name]}[]`
    })
    return `unnest(${arrays.join()}) as input (${columns.map(quoted).join()})`
  }
  const inserting = (first: number, values = list): string => `
    insert into ${table} as stored (${list})
    select ${values} from ${inputOf(first, names)}
  `
  const merging = (resolve: (column: string) => string, canBeRead: boolean) => {
    const set = others.map((column) => `${column} = ${resolve(column)}`).join()
    const returning = canBeRead || shared.isShared ? 'returning stored.*' : ''
    return (rows: readonly Row[]): WriteClause => ({
      name: quoted(`set ${table}`),
      ...shared,
      text: (first, condition) =>
        `${inserting(first)} where ${condition} on conflict (${key.map(quoted).join()}) do update set ${set} ${returning}`,
      parameters: arraysOf(rows, names),
    })
  }
  const equal = (column: string): string => `stored.${quoted(column)} = input.${quoted(column)}`
  return {
    insert: (rows, changed = {}) => ({
      name: quoted(`add ${table}`),
      text: (first) => inserting(first, names.map((name) => changed[name] ?? quoted(name)).join()),
      parameters: arraysOf(rows, names),
    }),
    replace: merging((column) => `excluded.${column}`, false),
    add: merging((column) => `stored.${column} + excluded.${column}`, true),
    update: (columns, by = key) => {
      const used = [...by, ...columns]
      const set = columns.map((column) => `${quoted(column)} = input.${quoted(column)}`).join()
      return (rows) => ({
        name: quoted(`change ${table} by ${by.join()}`),
        text: (first) => `
          update ${table} as stored set ${set} from ${inputOf(first, used)} where ${by.map(equal).join(' and ')}
        `,
        parameters: arraysOf(rows, used),
      })
    },
  }
}
