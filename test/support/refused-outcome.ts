import { expect } from 'chai'

/** Codes of requests that are refused before their command is read: credential, limits, body and schema. */
const BEFORE_READING =
  /^(CREDENTIAL_|API_KEY_|BEARER_|READ_ONLY_KEY|ADDRESS_NOT_|MISSING_FIELD|UNKNOWN_FIELD|DUPLICATE_FIELD|INVALID_JSON|PRECISION_LOST|BODY_|UNSUPPORTED_|MALFORMED_|RATE_LIMITED|TOO_MANY_)/

interface Refused {
  readonly code: string
  readonly outcome: string
}

/** The outcome of a command that placed nothing. A field can be invalid by the schema, or by a rule that reads the command. */
export function expectRefusedOutcome({ code, outcome }: Refused, message = code): void {
  const expected = BEFORE_READING.test(code) ? ['not_read'] : ['not_placed']
  if (code === 'INVALID_FIELD') expected.push('not_read')
  expect(outcome, message).to.be.oneOf(expected)
}
