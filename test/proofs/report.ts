/** docs/audit/proofs.md: what `npm run prove` proved, and what stays tested only. */
import type { Limits, Verdict } from './model-checker.ts'
import type { Property } from './properties.ts'

interface Result {
  readonly property: Property
  readonly verdict: Verdict
}

const INTRODUCTION = `# Machine-checked properties

\`npm run prove\` writes this page with solc's model checker (SMTChecker, engine BMC; no function has a loop). A property is *proved* if no input within the bounds of
\`docs/audit/arithmetic.md\` breaks an assertion, overflows, or divides by zero, in the property and in the library code that it calls. For the proof unchecked arithmetic is checked and a
revert is a failed \`require\` (\`test/proofs/model-checker.ts\`).

Only tested: bit layouts and assembly (\`PositionLib.pack\`, \`unpack\`, \`addMargin\`; \`OrderLib.read\`), packed words (\`PositionLib.applyFill\`), and \`SaltLib\`, in all of its finite states
(\`test/parity/salts.exhaustive.test.ts\`). On an *undecided* property the solvers reached their limit; its row names a test.`

const row = (...cells: readonly string[]): string => `| ${cells.join(' | ')} |`

export function reportOf(results: readonly Result[], versions: readonly string[], limits: Limits): string {
  const proved = results.filter(({ verdict }) => verdict.status === 'proved').length
  const lines = [
    INTRODUCTION,
    '',
    `${proved} of ${results.length} properties are proved. Solvers: ${versions.join('; ')}.`,
    `Limits: ${limits.query} s per condition and solver, ${limits.property} s per property.`,
    '',
    row('library', 'property', 'statement', 'result'),
    `|${'---|'.repeat(4)}`,
    ...results.map(({ property, verdict }) => {
      const { library, name, statement, fuzzed } = property
      const test = verdict.status === 'undecided' ? ` \`${fuzzed}\` |` : ''
      return `${row(`\`${library}\``, `\`${name}\``, statement, verdict.status)}${test}`
    }),
  ]
  return `${lines.join('\n')}\n`
}
