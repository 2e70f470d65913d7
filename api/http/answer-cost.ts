/** Requests of its limit that an operation costs beyond its first: most of the time goes to the rows of its answer. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Bucket } from './buckets.ts'

/** An operation costs one request of its limit, and one more for each of these bytes of its answer. */
const BYTES_PER_REQUEST = 32 * 1024
/** The limit of batches allows for their answers. */
const COSTED: ReadonlySet<Bucket> = new Set(['reads', 'orders', 'cancels', 'proofs'])

/** Additional requests that an answer costs: most of the time goes to its rows. */
export const costOfAnswer = (bucket: Bucket, bytes: number): number =>
  COSTED.has(bucket) ? Math.floor(bytes / BYTES_PER_REQUEST) : 0

/**
 * A command costs one request more if one of its signatures is refused: whose order it would be, and whether an earlier attempt has placed it, takes as long
 * as a placement.
 */
export const costOfCommandAnswer = (bucket: Bucket, json: string): number =>
  costOfAnswer(bucket, json.length) + (SIGNED.has(bucket) && json.includes(REFUSED_SIGNATURE) ? 1 : 0)

const SIGNED: ReadonlySet<Bucket> = new Set(['orders', 'batches'])
const REFUSED_SIGNATURE = '"code":"SIGNATURE_'

/** Orders of a batch of cancels for each of which it costs one request. */
const CANCELS_PER_REQUEST = 5

/** Additional requests that a batch of cancels costs. */
export const costOfCancels = (orders: number): number => Math.ceil(orders / CANCELS_PER_REQUEST) - 1

/** A stream costs about the processor time of a read for each of these bytes. */
const STREAMED_BYTES_PER_REQUEST = 256 * 1024

/** Additional requests that a file costs: its stream states the length. A HEAD request reads none of it. */
export function costOfStream({ method }: FastifyRequest, reply: FastifyReply): number {
  const bytes = Number(reply.getHeader('content-length') ?? 0)
  return method === 'HEAD' ? 0 : Math.floor(bytes / STREAMED_BYTES_PER_REQUEST)
}
