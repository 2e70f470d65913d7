/** The fields of a signed forward request in bodies, and their check against the request that the exchange would prepare. */
import Type, { type Static } from 'typebox'
import { type ForwardRequest, REQUEST_GAS, REQUEST_LIFE } from '../../domain/relays/forward-request.ts'
import type { Address, Seconds } from '../../domain/units.ts'
import { ApiError } from '../errors.ts'
import { expects, MAX_INTEGER } from '../wire/schema.ts'

export const addressInput = (description: string) =>
  Type.String({
    pattern: '^0x[0-9a-fA-F]{40}$',
    ...expects('an address: 0x and 40 hexadecimal digits'),
    description,
  })

const integerInput = (least: number, most: number, description: string) =>
  Type.Integer({
    ...{ minimum: least, maximum: most, description },
    ...expects(`a whole number from ${least} to ${most}`),
  })

export const forwardFields = {
  from: addressInput('The owner: the wallet of the account.'),
  to: addressInput('The contract that the forwarder calls.'),
  gas: integerInput(1, REQUEST_GAS.most, 'Gas of the call.'),
  nonce: integerInput(0, MAX_INTEGER, "The owner's next nonce at the forwarder."),
  deadline: integerInput(0, MAX_INTEGER, 'Last block time at which the request is valid, in Unix seconds.'),
  data: Type.String({
    pattern: '^0x([0-9a-fA-F]{2}){0,200}$',
    ...expects('calldata: 0x and hexadecimal digits'),
    description: 'Calldata of the call.',
  }),
}

export const signatureField = Type.String({
  maxLength: 200,
  description: 'Signature of the owner over the typed data `ForwardRequest`: r, s and v, 65 bytes as hex.',
})

type ForwardBody = Static<ReturnType<typeof Type.Object<typeof forwardFields>>>

/** Required values of the caller's forward request. */
export interface ExpectedRequest {
  readonly from: Address
  readonly to: Address
  readonly data: `0x${string}`
}

/** Throws unless target and calldata are exactly as expected, because the signature must authorize nothing else. */
export function parseForwardRequest(body: ForwardBody, expected: ExpectedRequest): ForwardRequest {
  const lower = {
    from: body.from.toLowerCase() as Address,
    to: body.to.toLowerCase() as Address,
    data: body.data.toLowerCase() as `0x${string}`,
  }
  if (lower.from !== expected.from)
    throw new ApiError('NOT_YOURS', { field: 'from', expected: expected.from, received: body.from })
  for (const field of ['to', 'data'] as const) {
    if (lower[field] !== expected[field])
      throw new ApiError('FORWARD_REQUEST_MISMATCH', {
        ...{ field, expected: expected[field], received: body[field] },
      })
  }
  return { ...lower, gas: body.gas, nonce: body.nonce, deadline: body.deadline as Seconds }
}

/** Throws unless gas and deadline are within their bounds. A request that was accepted before is not checked again. */
export function checkBounds({ gas, deadline }: ForwardRequest, now: Seconds): void {
  const { needed, most } = REQUEST_GAS
  if (gas < needed)
    throw new ApiError('INVALID_FIELD', {
      ...{ field: 'gas', expected: `${needed} to ${most}`, received: gas, nearest_valid: needed },
    })
  const [earliest, latest] = [now + REQUEST_LIFE.least, now + REQUEST_LIFE.most]
  if (deadline < earliest || deadline > latest)
    throw new ApiError('FORWARD_DEADLINE', {
      ...{ field: 'deadline', expected: `${earliest} to ${latest}`, received: deadline },
    })
}
