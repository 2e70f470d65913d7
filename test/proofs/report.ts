/** docs/audit/proofs.md: what `npm run prove` proved, and what stays tested only. */
import { createHash } from 'node:crypto'
import type { Limits, Verdict } from './model-checker.ts'
import type { Property } from './properties.ts'

interface Result {
  readonly property: Property
  readonly verdict: Verdict
}

const INTRODUCTION = `# Machine-checked properties

\`npm run prove\` writes this page with solc's model checker (SMTChecker, engine BMC; no function has a loop). A property is *proved* if no input within the bounds of
\`docs/audit/arithmetic.md\` breaks an assertion, overflows, or divides by zero, in the property and in the library code that it calls. Unchecked arithmetic is checked, and a
revert is a failed \`require\` (\`test/proofs/model-checker.ts\`). The notice above a property in \`test/proofs/*.sol\` is its statement.

Only tested: bit layouts and assembly (\`PositionLib.pack\`, \`unpack\`, \`addMargin\`; \`OrderLib.read\`), packed words (\`PositionLib.applyFill\`), and \`SaltLib\`, in all of its finite states
(\`test/parity/salts.exhaustive.test.ts\`). On an *undecided* property the solvers reached their limit; the page then names a test.`

/** First digits of a digest of all statements: the page of an earlier statement fails its test. */
export const statementsDigest = (properties: readonly Property[]): string =>
  createHash('sha256')
    .update(properties.map(({ name, statement }) => `${name}: ${statement}\n`).join(''))
    .digest('hex')
    .slice(0, 16)

/** A line for each library, with the names of its properties. */
function lineOf(library: string, results: readonly Result[]): string {
  const names = results
    .filter(({ property }) => property.library === library)
    .map(({ property: { name, fuzzed }, verdict }) =>
      verdict.status === 'undecided' ? `\`${name}\` (undecided: \`${fuzzed}\`)` : `\`${name}\``,
    )
  return `- \`${library}\`:\n  ${names.join(',\n  ')}`
}

export function reportOf(results: readonly Result[], versions: readonly string[], limits: Limits): string {
  const proved = results.filter(({ verdict }) => verdict.status === 'proved').length
  const libraries = [...new Set(results.map(({ property }) => property.library))]
  const lines = [
    INTRODUCTION,
    '',
    `${proved} of ${results.length} properties are proved. Solvers: ${versions.join('; ')}.`,
    `Limits: ${limits.query} s per condition and solver, ${limits.property} s per property.`,
    `Digest of the statements: \`${statementsDigest(results.map(({ property }) => property))}\`.`,
    '',
    ...libraries.map((library) => lineOf(library, results)),
  ]
  return `${lines.join('\n')}\n`
}
