# Builds the image for container hosts from the files that .dockerignore names. By default it runs relay and boost behind one
# port; the Procfile has the commands of each alone. `--target dev` builds an image of a dev chain with its builder.

FROM node:24-slim AS packages
WORKDIR /app
COPY package.json package-lock.json ./
# The native packages include their binaries, so no compiler is needed.
RUN npm ci --omit=dev

FROM node:24-slim AS dev
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci
COPY tsconfig.json ./
COPY shared ./shared
COPY test/devnet ./test/devnet
USER 1000:1000
CMD ["node", "--import", "tsx", "test/devnet/chain.ts"]

FROM node:24-slim
# Without its cache, tsx needs no writable folder.
ENV NODE_ENV=production TSX_DISABLE_CACHE=1 PORT=8080 DATA_DIR=/data
WORKDIR /app
# The stores are here unless DATABASE_URL is set: mount a volume.
RUN mkdir --mode=0700 /data && chown 1000:1000 /data
COPY --from=packages /app/node_modules ./node_modules
COPY LICENSE package.json tsconfig.json ./
COPY relay ./relay
COPY boost-proxy ./boost-proxy
COPY shared ./shared
# The commit, for --version and /info. It comes last, so that a new commit alone keeps the layers above.
ARG SOURCE_VERSION
ENV SOURCE_VERSION=${SOURCE_VERSION}
# The image's user `node`, as a number, so that hosts can verify that it is not root.
USER 1000:1000
EXPOSE 8080
# Checks that the process is up, not that it is ready: a process that waits for the store's lease is healthy.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/livez').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=32", "--import", "tsx", "boost-proxy/pair.ts"]
