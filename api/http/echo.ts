/** How errors and logs repeat what a request contained: shortened and without credentials. */

/** Maximum length of a repeated value, in characters. */
const LONGEST = 200
/** Credentials are searched in so many characters, which bounds the time. */
const SEARCHED = 1_000

/** API keys, also in other case; identity tokens; signatures of wallets. */
const CREDENTIAL =
  /cb_[\w-]{43}|eyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?|0x(?:[0-9a-f]{130}|[0-9a-f]{132})(?![0-9a-f])/gi
const REDACTED = '[redacted]'
/** Fields that hold secrets of the caller, here or at other exchanges. */
const CONFIDENTIAL = /private|secret|token|passw|mnemonic|seed|api_?key|(^|_)key$|authorization|signature/i

export function echoText(text: string): string {
  const start = text.slice(0, SEARCHED)
  const shown = start.replace(CREDENTIAL, REDACTED)
  const inAll = `(${text.length} characters in all)`
  // The end of the part that was searched may be a part of a credential.
  if (shown !== start && text.length > SEARCHED) return `${REDACTED} ${inAll}`
  const isWhole = text.length <= SEARCHED && shown.length <= LONGEST
  return isWhole ? shown : `${shown.slice(0, LONGEST)}… ${inAll}`
}

/** A value that is no text stays as it is if it is short and contains no credential. */
export function echo(value: unknown): unknown {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  const shown = echoText(text)
  return shown === text ? value : shown
}

/** The value of a field that failed validation. */
export function echoField(field: string, value: unknown): unknown {
  if (!CONFIDENTIAL.test(field)) return value
  return typeof value === 'string' ? `${value.length} characters` : typeof value
}

interface LoggedRequest {
  readonly method: string
  readonly url: string
  readonly ip: string
}

/** Logged fields of a request. The query is left out, because callers put credentials there by mistake. */
export const loggedRequest = ({ method, url, ip }: LoggedRequest) => ({
  method,
  path: echoText(url.split('?', 1)[0] as string),
  remoteAddress: ip,
})
