// Exits with 0 if this Node.js runs TypeScript without a build step. CommonJS and old syntax, so that any Node.js can run it.
const [major, minor] = process.versions.node.split('.').map(Number)
process.exit(major > 22 || (major === 22 && minor >= 18) ? 0 : 1)
