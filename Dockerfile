# The image of Tollgate: compiled code and production packages, nothing else. It needs DATABASE_URL and REDIS_URL.
#
#   docker build -t tollgate .
#   docker run -p 8080:8080 -e DATABASE_URL=… -e REDIS_URL=… tollgate                     a gateway and a writer
#   docker run … -e WORKERS=auto tollgate                                                 a gateway for each CPU, and a writer
#   docker run … tollgate node dist/main.js gateway                                       one role (see docs/operating.md)
#
# Debian 13 or newer: the current uWebSockets.js binaries need glibc 2.38.
ARG NODE_IMAGE=node:24-trixie-slim

# What is built runs on every processor. So an image for another processor than this machine's is built on this machine's own, and
# only the packages, some of which have binaries, are installed as that processor.
FROM --platform=$BUILDPLATFORM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --no-audit --no-fund --loglevel=error
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/bundle.mjs scripts/copy-assets.mjs scripts/build-web.mjs scripts/
COPY web web
COPY migrations migrations
COPY src src
RUN npm run build

FROM ${NODE_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --no-audit --no-fund --loglevel=error

FROM ${NODE_IMAGE}
ENV NODE_ENV=production PORT=8080 METRICS_PORT=9464
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/dist dist
# package.json tells Node that dist/ has ES modules.
COPY package.json ./
USER node
EXPOSE 8080 9464
# A writer has no public port, so the check falls back to the metrics port, which answers as long as the process works.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["node", "-e", "const { PORT, METRICS_PORT } = process.env; const ok = (url) => fetch(url).then((r) => r.ok); ok(`http://127.0.0.1:${PORT}/healthz`).catch(() => ok(`http://127.0.0.1:${METRICS_PORT}/metrics`)).then((up) => process.exit(up ? 0 : 1), () => process.exit(1))"]
# The exec form, so that SIGTERM reaches node itself. The process then takes no new calls, lets those under way finish, and settles
# them.
STOPSIGNAL SIGTERM
CMD ["node", "dist/main.js"]
