/**
 * Computes a public answer once for all requests that arrive meanwhile: one query and one serialization. Very popular
 * answers also serve later requests (`answers-in-demand.ts`).
 */
import type { FastifyReply, FastifyRequest } from 'fastify'

type Reading = Pick<FastifyRequest, 'url' | 'query'>
type Reply = Pick<FastifyReply, 'serialize' | 'type'>

/**
 * Answers with the result of `compute`, or with the result for an earlier request of the same path and query. The result is
 * serialized already, and typed as the value for the route's handler.
 */
export type ShareAnswer = <Value extends object>(
  request: Reading,
  reply: Reply,
  compute: () => Promise<Value>,
) => Promise<Value>

/** A serialized answer. */
export interface Answer {
  readonly text: string
  /** In the form that Node.js writes fastest: a short text of single bytes goes with the headers, in Latin-1. */
  readonly body: string | Buffer
  readonly bytes: number
}

export interface SharedAnswers<Form> {
  readonly share: ShareAnswer
  /** Keeps in which form answers to requests for `url` are sent, while they are in demand. */
  keepForm(url: string, formOf: () => Form): void
  /**
   * The answer in demand to a request for `url`, which counts the request; undefined, without counting it, if the answer must be computed.
   * `at`: now, by the clock of these answers.
   */
  find(url: string, at: number): Found<Form> | undefined
}

export interface Found<Form> {
  readonly form: Form
  /** A promise while the answer is computed. */
  readonly answer: Answer | Promise<Answer>
}

/** An answer is in demand when it was requested more often than this in the present or the last window. */
export const DEMAND = 10
export const WINDOW_MS = 100
/** Age up to which an answer in demand serves further requests, from the start of computing it. */
export const FRESH_MS = 25
/** Clients choose paths and queries. Beyond this number of entries, or of kept bytes, all entries are dropped. Long answers are kept twice. */
const MOST = 1_000
const MOST_BYTES = 32 * 1024 * 1024
/** Above this size, copying the body beside the headers costs more than writing it separately. */
const SHORT_BYTES = 4_096

interface Latest extends Answer {
  /** Start of computing it. */
  readonly startedAt: number
}

interface Known<Form> {
  running: Promise<Answer> | undefined
  /** The newest answer, if it was in demand when it was computed. */
  latest: Latest | undefined
  form: Form | undefined
  windowStart: number
  requests: number
  wasInDemand: boolean
}

/** `now`: milliseconds of a clock that never steps. */
export function createSharedAnswers<Form>(now: () => number = () => performance.now()): SharedAnswers<Form> {
  const answers = new Map<string, Known<Form>>()
  let bytesKept = 0

  function forgetAll(): void {
    answers.clear()
    bytesKept = 0
  }

  function knownAt(url: string, at: number): Known<Form> {
    const found = answers.get(url)
    if (found !== undefined) return found
    if (answers.size >= MOST) forgetAll()
    const known = {
      ...{ running: undefined, latest: undefined, form: undefined },
      ...{ windowStart: at, requests: 0, wasInDemand: false },
    }
    answers.set(url, known)
    return known
  }

  function keep(url: string, known: Known<Form>, latest: Latest): void {
    if (answers.get(url) !== known) return
    bytesKept -= known.latest?.bytes ?? 0
    known.latest = isInDemand(known) ? latest : undefined
    bytesKept += known.latest?.bytes ?? 0
    if (bytesKept > MOST_BYTES) forgetAll()
  }

  async function run(url: string, known: Known<Form>, startedAt: number, serialize: () => Promise<string>) {
    try {
      const answer = { ...answerOf(await serialize()), startedAt }
      keep(url, known, answer)
      return answer
    } finally {
      known.running = undefined
    }
  }

  async function answerTo(url: string, serialize: () => Promise<string>): Promise<string> {
    const at = now()
    const known = knownAt(url, at)
    startWindow(known, at)
    known.requests++
    const served = servedBy(known, at)
    if (served !== undefined) return (await served).text
    known.running = run(url, known, at, serialize)
    return (await known.running).text
  }

  return {
    async share<Value extends object>(request: Reading, reply: Reply, compute: () => Promise<Value>) {
      const serialize = async (): Promise<string> => reply.serialize(await compute()) as string
      // A read with a bookmark takes one of its caller's places among the waiting reads.
      const text = hasBookmark(request.query) ? serialize() : answerTo(request.url, serialize)
      reply.type('application/json; charset=utf-8')
      return (await text) as unknown as Value
    },
    keepForm(url, formOf) {
      const known = answers.get(url)
      if (known !== undefined) known.form = isInDemand(known) ? formOf() : undefined
    },
    find(url, at) {
      const known = answers.get(url)
      if (known?.form === undefined) return undefined
      startWindow(known, at)
      const answer = servedBy(known, at)
      if (answer === undefined) return undefined
      known.requests++
      return { form: known.form, answer }
    },
  }
}

function answerOf(serialized: string): Answer {
  const encoded = Buffer.from(serialized)
  // A concatenated string is a tree of its parts; without this flat copy each request would walk the tree.
  const text = encoded.toString()
  const bytes = encoded.length
  const isShortLatin = bytes === text.length && bytes <= SHORT_BYTES
  return { text, body: isShortLatin ? text : encoded, bytes }
}

/** The answer that is being computed, or the newest answer in demand; undefined if the request must compute an answer. */
function servedBy(known: Known<unknown>, at: number): Answer | Promise<Answer> | undefined {
  const { latest, running } = known
  if (running !== undefined) return running
  const isServed = latest !== undefined && isInDemand(known) && at - latest.startedAt <= FRESH_MS
  return isServed ? latest : undefined
}

type Demand = Pick<Known<unknown>, 'windowStart' | 'requests' | 'wasInDemand'>

function startWindow(demand: Demand, at: number): void {
  const age = at - demand.windowStart
  if (age < WINDOW_MS) return
  demand.wasInDemand = age < 2 * WINDOW_MS && demand.requests > DEMAND
  demand.windowStart = at
  demand.requests = 0
}

const isInDemand = ({ requests, wasInDemand }: Demand): boolean => wasInDemand || requests > DEMAND

const hasBookmark = (query: unknown): boolean =>
  Object.keys(query as object).some((name) => name.startsWith('read_after'))
