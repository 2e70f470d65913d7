/** Answers requests for popular public answers without the framework, from the newest shared answer. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyContextConfig } from 'fastify'
import type { Metrics } from '../metrics.ts'
import type { LocalLimits } from './access.ts'
import { beforeFramework, headersOf, type Listener, type OwnValues, ownHeaders } from './before-framework.ts'
import type { Answer, SharedAnswers } from './shared-answers.ts'
import type { App } from './types.ts'

/** How answers to requests for one URL are sent. */
export interface AnswerForm {
  readonly route: string
  /** Names and values in turn, without the headers of a single request. */
  readonly headers: readonly string[]
}

export interface DemandPorts {
  readonly answers: SharedAnswers<AnswerForm>
  readonly limits: LocalLimits
  /** Undefined once the connection has ended. */
  readonly addressOf: (request: IncomingMessage) => string | undefined
  readonly nextId: () => string
  /** The framework rejects its requests. */
  readonly isRefused: (request: IncomingMessage) => boolean
  readonly metrics: Pick<Metrics, 'request'>
}

/** Call it before further listeners of the server are added, and after the hooks that set headers. */
export function answerInDemand(app: App, ports: DemandPorts): void {
  keepForms(app, ports.answers)
  beforeFramework(app, (route) => createListener(app, ports, route))
}

/** Whether the answer depends on nothing but the URL: credentials have limits of their own, and `Origin` is answered with headers. */
const isPlain = ({ method, headers: { host, origin, authorization } }: IncomingMessage): boolean =>
  method === 'GET' && host !== undefined && origin === undefined && authorization === undefined

/** `route` handles what is not answered here. */
/**
 * Requests count in the same limits and metrics. A request that may need a different answer, for example because of its
 * headers, goes to the framework.
 */
function createListener(app: App, ports: DemandPorts, route: Listener): Listener {
  const { answers, limits, addressOf, nextId, metrics, isRefused } = ports
  let isClosing = false
  app.addHook('preClose', (done) => {
    isClosing = true
    done()
  })
  return (request, response) => {
    const startedAt = performance.now()
    const isAnswered = isPlain(request) && !isClosing && !isRefused(request)
    const found = isAnswered ? answers.find(request.url as string, startedAt) : undefined
    const ip = found && addressOf(request)
    // A connection that has ended has no address. What a limit rejects is counted and rejected by the framework.
    const limit = ip === undefined ? null : limits.count('reads', { ip, caller: null })
    if (found === undefined || limit === null) {
      route(request, response)
      return
    }
    const { form, answer } = found
    const send = (sent: Answer): void => {
      if (isClosing) response.setHeader('connection', 'close')
      write(response, form, sent, { id: nextId(), ...limit })
      metrics.request('GET', form.route, 200, (performance.now() - startedAt) / 1000)
    }
    const fail = (): void => {
      limits.markCounted(request, limit)
      route(request, response)
    }
    if (answer instanceof Promise) answer.then(send, fail)
    else send(answer)
  }
}

function write(response: ServerResponse, form: AnswerForm, { body, bytes }: Answer, own: OwnValues): void {
  response.writeHead(200, [...form.headers, ...ownHeaders(bytes, own)])
  response.end(body, 'latin1')
}

/** Its limits are those of `LocalLimits` without a caller, and `If-None-Match` is ignored. */
const isPublicRead = ({
  access = 'public',
  bucket = 'reads',
  cached = false,
}: FastifyContextConfig): boolean => access === 'public' && bucket === 'reads' && !cached

function keepForms(app: App, answers: SharedAnswers<AnswerForm>): void {
  app.addHook('onSend', ({ url, raw, routeOptions }, reply, payload, done) => {
    if (reply.statusCode === 200 && isPlain(raw) && isPublicRead(routeOptions.config))
      answers.keepForm(url, () => ({ route: routeOptions.url as string, headers: headersOf(reply) }))
    done(null, payload)
  })
}
