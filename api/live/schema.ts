/** The operations that a client sends. */
import Type, { type Static, type TSchema } from 'typebox'
import { SWITCH_SECONDS } from '../cancel-switch/schema.ts'
import { BATCH_BODY_LIMIT, BODY_LIMIT } from '../http/errors.ts'
import { CancelAllBody, CancelBatchBody, PlaceBatchBody } from '../order-entry/batch-schema.ts'
import { ReplaceBatchBody, ReplaceBody } from '../order-entry/replace-schema.ts'
import { CANCEL_HINTS, CancelBody, PlaceOrderBody } from '../order-entry/schema.ts'
import { ClientOrderIdParams, OrderHashParams } from '../orders/schema.ts'
import { closed, expects, words } from '../wire/schema.ts'
import { TOPIC_NAMES } from './topics.ts'

const ID_EXPECTED = '1 to 100 printable ASCII characters, or an integer'

/** Id of an operation, chosen by the client and repeated in its answers. */
export const Id = Type.Unsafe<string | number>({
  type: ['string', 'integer'],
  pattern: '^[\\x20-\\x7e]{1,100}$',
  minimum: Number.MIN_SAFE_INTEGER,
  maximum: Number.MAX_SAFE_INTEGER,
  ...expects(ID_EXPECTED),
  description: `Your id of this operation: ${ID_EXPECTED}. Its answers carry it.`,
})

const MAX_TOPICS = 100

const POSITION_EXPECTED = 'a position <epoch>:<seq>'

export const Topics = Type.Array(
  Type.String({ pattern: '^[\\x20-\\x7e]{1,100}$', ...expects('the name of a topic') }),
  {
    minItems: 1,
    maxItems: MAX_TOPICS,
    ...expects(`1 to ${MAX_TOPICS} names of topics`),
    description: `Names of topics: ${TOPIC_NAMES}.`,
  },
)

/** Longest envelope around a body, bytes. */
const ENVELOPE = 1024

/** Longest text of a message that is no batch, bytes. */
export const MESSAGE_LIMIT = BODY_LIMIT + ENVELOPE
/** Longest text of any message: a client that sends more is disconnected. */
export const BATCH_MESSAGE_LIMIT = BATCH_BODY_LIMIT + ENVELOPE

const operation = <Op extends string, Fields extends Record<string, TSchema>>(
  op: Op,
  fields: Fields,
  description: string,
) => closed({ op: words([op], 'The operation.'), id: Id, ...fields }, { description })

const command = <Op extends string, Body extends TSchema>(op: Op, body: Body, description: string) =>
  operation(op, { body }, description)

const GRACE = `${SWITCH_SECONDS.least} to ${SWITCH_SECONDS.most}, or 0 to turn it off`

/** The operations of clients, by `op`. */
export const OPERATIONS = {
  subscribe: operation(
    'subscribe',
    {
      topics: Topics,
      since: Type.Optional(
        Type.Record(
          Type.String(),
          Type.String({ pattern: '^\\d{1,15}:\\d{1,15}$', ...expects(POSITION_EXPECTED) }),
          {
            ...expects(`an object from topics to positions: ${POSITION_EXPECTED}`),
            description:
              'Of each topic that resumes instead of starting with a snapshot: the position of the last message received, ' +
              '`<epoch>:<seq>` with the epoch of `subscribed`.',
          },
        ),
      ),
    },
    'Subscribe to topics. Each topic is answered by `subscribed` or `error`, and starts with a snapshot or with what followed `since`.',
  ),
  unsubscribe: operation('unsubscribe', { topics: Topics }, 'End subscriptions.'),
  auth: operation(
    'auth',
    {
      authorization: Type.String({
        maxLength: 16_000,
        description: 'The value of the Authorization header: `Key <API_KEY>` or `Bearer <ACCESS_TOKEN>`.',
      }),
    },
    'Authenticate the connection, or renew its credential. A connection belongs to one account.',
  ),
  ping: operation('ping', {}, 'Get an answer at once.'),
  cancel_on_disconnect: operation(
    'cancel_on_disconnect',
    {
      grace_seconds: Type.Integer({
        minimum: 0,
        maximum: SWITCH_SECONDS.most,
        ...expects(GRACE),
        description: `${GRACE}. How long after the end of the connection the orders of the account are cancelled.`,
      }),
    },
    'Cancel every live order of the account when the connection ends, unless another connection of the account has it turned on by then.',
  ),
  place: command('place', PlaceOrderBody, 'As POST /v0/orders.'),
  place_batch: command('place_batch', PlaceBatchBody, 'As POST /v0/orders/place/batch.'),
  replace: command('replace', ReplaceBody, 'As POST /v0/orders/replace.'),
  replace_batch: command('replace_batch', ReplaceBatchBody, 'As POST /v0/orders/replace/batch.'),
  cancel: command(
    'cancel',
    closed({ ...OrderHashParams.properties, ...CancelBody.properties }, { 'x-hints': CANCEL_HINTS }),
    'As POST /v0/orders/cancel/by-hash/:order_hash.',
  ),
  cancel_by_client_id: command(
    'cancel_by_client_id',
    closed({ ...ClientOrderIdParams.properties, ...CancelBody.properties }, { 'x-hints': CANCEL_HINTS }),
    'As POST /v0/orders/cancel/by-client-id/:client_order_id.',
  ),
  cancel_batch: command('cancel_batch', CancelBatchBody, 'As POST /v0/orders/cancel/batch.'),
  cancel_all: command('cancel_all', CancelAllBody, 'As POST /v0/orders/cancel/all.'),
} as const

export type Op = keyof typeof OPERATIONS
export const OPS = Object.keys(OPERATIONS) as readonly Op[]
export type Message<Name extends Op = Op> = { [Key in Name]: Static<(typeof OPERATIONS)[Key]> }[Name]

/** Operations that take effect: read-only keys may not call them, and their errors have an outcome. */
export const isCommand = (op: string): boolean => /^(?:place|replace|cancel)/.test(op)
