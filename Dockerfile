# For both platforms, from Docker Hub and npm alone:
#   docker buildx build --platform linux/amd64,linux/arm64 --tag NAME --push .
# Each platform's stages run on that platform, emulated where the machine is another one: packages choose their programs by it.
#
# Debian 13: its glibc loads the prebuilt uWebSockets.js as it is.
FROM node:24-trixie-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
# Packages are a layer of their own: a change in src installs nothing again.
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY clients ./clients
COPY src ./src
RUN npm run build && npm prune --omit=dev --ignore-scripts
# uWebSockets.js brings 20 programs of 5 to 7 MB, for every platform and Node: this image runs one of them.
RUN find node_modules/uWebSockets.js -name 'uws_*.node' \
  ! -name "uws_$(node -p 'process.platform + "_" + process.arch + "_" + process.versions.modules').node" -delete

FROM node:24-trixie-slim
LABEL org.opencontainers.image.title="sluice" \
  org.opencontainers.image.description="Very large sets of rows from MongoDB or SQLite over HTTP, as pages and streams" \
  org.opencontainers.image.licenses="MIT"
WORKDIR /app
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data DRAIN_DELAY=5s
# glibc gives more free memory back to the system when readers have left: see docs/operations.md.
ENV MALLOC_ARENA_MAX=2 MALLOC_TRIM_THRESHOLD_=131072 MALLOC_MMAP_THRESHOLD_=33554432
RUN mkdir /data && chown node:node /data
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY LICENSE ./
COPY docs/resources.schema.json ./docs/
USER node
VOLUME /data
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=5s CMD ["node", "-e", "fetch('http://127.0.0.1:3000/livez').then((r) => process.exit(r.ok ? 0 : 1))"]
CMD ["node", "dist/process/cli.js", "serve"]
