/** An error of which the command prints only the message. */
export class OpsError extends Error {
  override readonly name = 'OpsError'
}
