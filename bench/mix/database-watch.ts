/** Observes the database during a measurement: statements, waits, and the progress of the read model. */
import pg from 'pg'

/** Loads the module that counts statements. */
export const STATEMENT_SETTINGS = [
  'shared_preload_libraries=pg_stat_statements',
  'pg_stat_statements.max=5000',
  'pg_stat_statements.track=top',
  'pg_stat_statements.track_planning=on',
]

export interface Statements {
  /** By login. */
  readonly calls: ReadonlyMap<string, number>
  readonly top: readonly {
    readonly login: string
    readonly calls: number
    readonly ms: number
    readonly planning_ms: number
    readonly text: string
  }[]
}

export interface Progress {
  readonly at: number
  readonly seq: number
}

export interface DatabaseWatch {
  /** Counts statements and waits from now on. */
  reset(): Promise<void>
  /** The counts since the reset. `top`: number of statements to list. */
  statements(top: number): Promise<Statements>
  /** Mean number of waiting sessions by kind of wait, and of running sessions. */
  waits(): ReadonlyMap<string, number>
  /** By shard, in order: when the read model's fills were first seen to include a sequence. */
  readonly progress: ReadonlyMap<string, readonly Progress[]>
  stop(): Promise<void>
}

const WAITS_EVERY_MS = 50
const PROGRESS_EVERY_MS = 10

/** Sessions of the exchange only: the owner's login is this program's. */
const SESSIONS = `
  select usename || ': ' || coalesce(wait_event_type || ' ' || wait_event, 'running') as kind, count(*)::int as sessions
  from pg_stat_activity where state = 'active' and usename <> current_user group by 1`

const CALLS = `
  select r.rolname as login, sum(calls)::float8 as calls
  from pg_stat_statements s join pg_roles r on r.oid = s.userid where r.rolname <> current_user group by 1 order by 1`

const TOP = `
  select r.rolname as login, calls::float8 as calls, total_exec_time as ms, total_plan_time as planning_ms, regexp_replace(query, '\\s+', ' ', 'g') as text
  from pg_stat_statements s join pg_roles r on r.oid = s.userid
  where r.rolname <> current_user order by total_exec_time + total_plan_time desc limit $1`

export async function watchDatabase(url: string): Promise<DatabaseWatch> {
  const [waiting, projected] = [new pg.Client(url), new pg.Client(url)]
  await Promise.all([waiting.connect(), projected.connect()])
  await waiting.query('create extension if not exists pg_stat_statements')
  const counts = new Map<string, number>()
  let rounds = 0
  const stopWaits = repeat(WAITS_EVERY_MS, async () => {
    const { rows } = await waiting.query<{ kind: string; sessions: number }>({
      name: 'waits',
      text: SESSIONS,
    })
    for (const { kind, sessions } of rows) counts.set(kind, (counts.get(kind) ?? 0) + sessions)
    rounds++
  })
  const progress = new Map<string, Progress[]>()
  const stopProgress = repeat(PROGRESS_EVERY_MS, async () => {
    const text = "select shard, seq::int from read.places where projection = 'orders'"
    const { rows } = await projected.query<{ shard: string; seq: number }>({ name: 'progress', text })
    const at = Date.now()
    for (const { shard, seq } of rows) {
      const seen = progress.get(shard) ?? []
      if (seen.at(-1)?.seq !== seq) seen.push({ at, seq })
      progress.set(shard, seen)
    }
  })
  return {
    progress,
    async reset() {
      await waiting.query('select pg_stat_statements_reset()')
      counts.clear()
      rounds = 0
    },
    async statements(top) {
      const calls = await waiting.query<{ login: string; calls: number }>(CALLS)
      const { rows } = await waiting.query<Statements['top'][number]>(TOP, [top])
      return { calls: new Map(calls.rows.map(({ login, calls }) => [login, calls])), top: rows }
    },
    waits: () => new Map([...counts].map(([kind, sessions]) => [kind, sessions / rounds])),
    async stop() {
      await Promise.all([stopWaits(), stopProgress()])
      await Promise.all([waiting.end(), projected.end()])
    },
  }
}

/** Runs `work` at this interval, never twice at a time. Returns a function that stops it. */
function repeat(everyMs: number, work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null
  const timer = setInterval(() => {
    running ??= work().finally(() => {
      running = null
    })
  }, everyMs)
  return async () => {
    clearInterval(timer)
    await running
  }
}
