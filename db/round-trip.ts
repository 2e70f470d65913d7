/**
 * Runs several prepared statements in one round trip with one Sync: the server answers in one write, and executes
 * nothing after a failed statement. Rows are described once.
 */
import pg from 'pg'

export type Parameter = string | number | bigint | boolean | Buffer | null

/** A statement to prepare under its name: one name stands for one text. */
export interface Statement {
  readonly name: string
  readonly text: string
  readonly values: readonly (Parameter | readonly Parameter[])[]
}

type Row = Record<string, unknown>

export interface RoundTripResult {
  /** The rows of each statement that was executed, in the order of the statements. */
  readonly rows: readonly (readonly Row[])[]
  /** Why the statement behind these was not executed; null if all were. */
  readonly error: Error | null
}

/** Never rejects. The caller ends the transaction after an error. */
export const runTogether = (
  client: pg.ClientBase,
  statements: readonly Statement[],
): Promise<RoundTripResult> =>
  new Promise((resolve) => {
    client.query(new RoundTrip(client, statements, resolve))
  })

interface Columns {
  readonly names: readonly string[]
  readonly parsers: readonly ((text: string) => unknown)[]
}

const NO_COLUMNS: Columns = { names: [], parsers: [] }

/** By connection: the statements that it has prepared, by name. */
const prepared = new WeakMap<pg.Connection, Map<string, Columns>>()

function preparedOn(connection: pg.Connection): Map<string, Columns> {
  const known = prepared.get(connection) ?? new Map()
  prepared.set(connection, known)
  return known
}

const elementOf = (value: Parameter): string => {
  if (value === null) return 'null'
  if (Buffer.isBuffer(value)) return `"\\\\x${value.toString('hex')}"`
  return typeof value === 'string' ? `"${value.replace(/["\\]/g, '\\$&')}"` : String(value)
}

const parameterOf = (value: Parameter | readonly Parameter[]): string | Buffer | null => {
  if (value === null || Buffer.isBuffer(value)) return value
  return Array.isArray(value) ? `{${value.map(elementOf).join()}}` : String(value)
}

interface RowDescription {
  readonly fields: readonly pg.FieldDef[]
}

/** The methods are those that `pg.Client` calls with the messages of the server. */
class RoundTrip extends pg.Query {
  /** Set by the client as well, which wraps it to bound the duration. */
  callback: (error: Error | null) => void
  readonly #client: pg.ClientBase
  readonly #statements: readonly Statement[]
  readonly #rows: Row[][] = []
  #current: Row[] = []
  #columns: Columns | undefined
  #known: Map<string, Columns> = new Map()
  /** Error of a value that cannot be parsed. */
  #unreadable: Error | null = null

  constructor(
    client: pg.ClientBase,
    statements: readonly Statement[],
    done: (result: RoundTripResult) => void,
  ) {
    super('')
    this.#client = client
    this.#statements = statements
    this.callback = (error) => done({ rows: this.#rows, error })
  }

  override submit = (connection: pg.Connection): void => {
    this.#known = preparedOn(connection)
    const { stream } = connection
    stream.cork()
    try {
      for (const statement of this.#statements) this.#send(connection as unknown as Sender, statement)
      connection.sync()
    } finally {
      stream.uncork()
    }
  }

  #send(connection: Sender, { name, text, values }: Statement): void {
    const isKnown = this.#known.has(name)
    if (!isKnown) {
      // It may be prepared without having been executed.
      connection.close({ type: 'S', name })
      connection.parse({ name, text })
    }
    connection.bind({ statement: name, values: values.map(parameterOf) })
    if (!isKnown) connection.describe({ type: 'P' })
    connection.execute()
  }

  handleRowDescription({ fields }: RowDescription): void {
    this.#columns = {
      names: fields.map(({ name }) => name),
      parsers: fields.map(({ dataTypeID }) => this.#client.getTypeParser(dataTypeID, 'text')),
    }
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const { names, parsers } = this.#columnsOfCurrent()
    const row: Row = {}
    try {
      for (let at = 0; at < fields.length; at++) {
        const text = fields[at] as string | null
        row[names[at] as string] = text === null ? null : parsers[at]?.(text)
      }
    } catch (error) {
      this.#unreadable ??= error as Error
    }
    this.#current.push(row)
  }

  handleCommandComplete(): void {
    this.#known.set(this.#currentName(), this.#columnsOfCurrent())
    this.#rows.push(this.#current)
    this.#current = []
    this.#columns = undefined
  }

  /** An error of a statement, or of the connection. The plan of the statement may be outdated. */
  handleError(error: Error): void {
    this.#known.delete(this.#currentName())
    this.callback(error)
  }

  handleReadyForQuery(): void {
    this.callback(this.#unreadable)
  }

  #currentName(): string {
    return this.#statements[this.#rows.length]?.name ?? ''
  }

  #columnsOfCurrent(): Columns {
    return this.#columns ?? this.#known.get(this.#currentName()) ?? NO_COLUMNS
  }
}

/** The messages that a `pg.Connection` sends; its published types are those of an older version. */
interface Sender {
  close(statement: { readonly type: 'S'; readonly name: string }): void
  parse(statement: { readonly name: string; readonly text: string }): void
  bind(values: { readonly statement: string; readonly values: readonly (string | Buffer | null)[] }): void
  describe(portal: { readonly type: 'P' }): void
  execute(): void
}
