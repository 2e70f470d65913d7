/** Signers of price reports: keys of this process, and signer processes over HTTP. */
import { SIGNING_REFUSALS, type SigningRefusal } from '../../domain/prices/signing.ts'
import type { Address } from '../../domain/units.ts'
import { boundedText } from '../../service/bounded-text.ts'
import type { ReportKey, SigningAnswer, SigningRequest } from '../../service/report-key.ts'
import type { ReportSigner } from '../ports.ts'

export const createLocalSigner = (name: string, key: ReportKey): ReportSigner => ({
  name,
  address: key.address,
  sign: (requests) => key.sign(requests),
})

export interface RemoteSignerOptions {
  readonly name: string
  readonly url: string
  readonly address: Address
  /** The secret that keeper and signer process share. */
  readonly secret: string
}

/** Checks only the form of answers, because the caller verifies the signatures. */
export const createRemoteSigner = ({ name, url, address, secret }: RemoteSignerOptions): ReportSigner => ({
  ...{ name, address },
  async sign(requests, deadlineMs) {
    const response = await fetch(new URL('/v1/sign', url), {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ reports: requests.map(toWire) }),
      signal: AbortSignal.timeout(deadlineMs),
    })
    if (response.status !== 200) throw new Error(`signer ${name} answered with status ${response.status}`)
    const text = await boundedText(response.body, MOST_BYTES)
    if (text === null) throw new Error(`signer ${name} answered with more than ${MOST_BYTES} bytes`)
    const { answers } = JSON.parse(text) as { answers?: unknown }
    if (!Array.isArray(answers)) throw new Error(`signer ${name} answered without a list of answers`)
    return answers.map((answer) => (isAnswer(answer) ? answer : NOTHING))
  },
})

/** Exceeds the answers to the maximum number of reports that a signer accepts. */
const MOST_BYTES = 500_000

/** Replaces an answer in an invalid form. The empty signature is invalid. */
const NOTHING: SigningAnswer = { signature: '' }

const toWire = ({ feedId, reading: { price, observedAt } }: SigningRequest) => ({
  feed_id: feedId,
  price: price.toString(),
  observed_at: observedAt,
})

/** Accepts only listed refusals: they are labels of a metric, and arbitrary reasons would fill the memory. */
const isAnswer = (answer: unknown): answer is SigningAnswer =>
  typeof answer === 'object' &&
  answer !== null &&
  (typeof (answer as { signature?: unknown }).signature === 'string' ||
    SIGNING_REFUSALS.includes((answer as { refusal?: unknown }).refusal as SigningRefusal))
