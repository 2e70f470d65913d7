/** Signers of price reports: keys of this process, and signer processes over HTTP. */
import type { Address } from '../../domain/units.ts'
import type { ReportKey, SigningAnswer, SigningRequest } from '../../service/report-key.ts'
import type { ReportSigner } from '../ports.ts'

export const createLocalSigner = (name: string, key: ReportKey): ReportSigner => ({
  name,
  address: key.address,
  sign: async (requests) => key.sign(requests),
})

export interface RemoteSignerOptions {
  readonly name: string
  readonly url: string
  readonly address: Address
  /** Shared with the signer's process. */
  readonly secret: string
}

/** The answers are verified by the caller, so only their form is checked. */
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
    const { answers } = (await response.json()) as { answers?: unknown }
    if (!Array.isArray(answers)) throw new Error(`signer ${name} answered without a list of answers`)
    return answers.map((answer) => (isAnswer(answer) ? answer : NOTHING))
  },
})

/** In place of an answer in another form. It is no valid signature. */
const NOTHING: SigningAnswer = { signature: '' }

const toWire = ({ feedId, reading: { price, observedAt } }: SigningRequest) => ({
  feed_id: feedId,
  price: price.toString(),
  observed_at: observedAt,
})

const isAnswer = (answer: unknown): answer is SigningAnswer =>
  typeof answer === 'object' &&
  answer !== null &&
  (typeof (answer as { signature?: unknown }).signature === 'string' ||
    typeof (answer as { refusal?: unknown }).refusal === 'string')
