/**
 * Statements that write any number of a table's rows from one JSON parameter, so that each is prepared once per
 * connection and a group takes as many statements as a row.
 */
import { toJson } from './json.ts'
import type { Statement } from './round-trip.ts'
import type { Database } from './schema.ts'

/** SQL types of columns by name. */
export type ColumnTypes = Readonly<Record<string, string>>
/** Values of columns by name; amounts in wei may be bigint or text. */
export type Columns = Readonly<Record<string, unknown>>

export interface TableColumns {
  readonly name: keyof Database & string
  readonly key: ColumnTypes
  /** Set when a row is inserted, and never changed. */
  readonly fixed?: ColumnTypes
  readonly changing?: ColumnTypes
  /** Distinguishes the statements of two writers of one table. */
  readonly suffix?: string
}

/** Writers of one table. None of them is called without rows. */
export interface StateTable {
  /** Inserts rows, or changes those that exist. */
  put(rows: readonly Columns[]): Statement
  /** Changes rows that exist. */
  change(rows: readonly Columns[]): Statement
  /** Deletes the rows with these keys. */
  remove(rows: readonly Columns[]): Statement
}

const namesOf = (types: ColumnTypes): string[] => Object.keys(types)
const quoted = (name: string): string => `"${name}"`

/** The parameter as a table `x` of these columns. */
const recordset = (types: ColumnTypes): string => {
  const columns = Object.entries(types).map(([name, type]) => `${quoted(name)} ${type}`)
  return `json_to_recordset($1::json) as x (${columns.join(', ')})`
}

const assignments = (types: ColumnTypes, from: string): string =>
  namesOf(types)
    .map((name) => `${quoted(name)} = ${from}.${quoted(name)}`)
    .join(', ')

function putText({ name, key, fixed = {}, changing = {} }: TableColumns): string {
  const types = { ...key, ...fixed, ...changing }
  const columns = namesOf(types).map(quoted).join(', ')
  const conflict =
    namesOf(changing).length === 0 ? 'nothing' : `update set ${assignments(changing, 'excluded')}`
  return `
    insert into ${name} (${columns}) overriding system value select ${columns} from ${recordset(types)}
    on conflict (${namesOf(key).map(quoted).join(', ')}) do ${conflict}
  `
}

const matching = (key: ColumnTypes): string =>
  namesOf(key)
    .map((name) => `t.${quoted(name)} = x.${quoted(name)}`)
    .join(' and ')

const changeText = ({ name, key, changing = {} }: TableColumns): string => `
  update ${name} t set ${assignments(changing, 'x')} from ${recordset({ ...key, ...changing })} where ${matching(key)}
`

const removeText = ({ name, key }: TableColumns): string =>
  `delete from ${name} t using ${recordset(key)} where ${matching(key)}`

export function stateTable(table: TableColumns): StateTable {
  const { name, suffix = name } = table
  const writer =
    (verb: string, text: string) =>
    (rows: readonly Columns[]): Statement => ({ name: `${verb}-${suffix}`, text, values: [toJson(rows)] })
  return {
    put: writer('state-put', putText(table)),
    change: writer('state-change', changeText(table)),
    remove: writer('state-remove', removeText(table)),
  }
}
