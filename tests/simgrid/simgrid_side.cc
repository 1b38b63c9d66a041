#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <memory>
#include <simgrid/s4u.hpp>
#include <string>

#include "tests/simgrid/simgrid_world.h"

namespace herdsim {
namespace {

namespace sg = simgrid::s4u;

// CM02 with nothing of TCP, exact to nine digits.
std::unique_ptr<sg::Engine> bare_engine() {
  std::vector<std::string> words = {"simgrid",
                                    "--cfg=network/model:CM02",
                                    "--cfg=network/crosstraffic:0",
                                    "--cfg=network/TCP-gamma:0",
                                    "--cfg=network/weight-S:0",
                                    "--cfg=network/bandwidth-factor:1",
                                    "--cfg=network/latency-factor:1",
                                    "--cfg=network/loopback-bw:1e15",
                                    "--cfg=contexts/stack-size:64",
                                    "--log=root.thres:error"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  int count = static_cast<int>(arguments.size());
  return std::make_unique<sg::Engine>(&count, arguments.data());
}

double rate(Bandwidth bandwidth) { return static_cast<double>(bandwidth.bytes_per_second()); }

void send(sg::Host* from, sg::Host* to, Bytes volume) {
  sg::Comm::sendto(from, to, static_cast<uint64_t>(volume.count()));
}

}  // namespace

std::vector<double> simgrid_ends(const std::vector<FlowSystem>& systems) {
  const std::unique_ptr<sg::Engine> engine = bare_engine();
  sg::NetZone* root = sg::create_full_zone("root");
  std::vector<double> ends;
  size_t flows = 0;
  for (const FlowSystem& system : systems) flows += system.flows.size();
  ends.assign(flows, -1);
  size_t next = 0;
  for (size_t s = 0; s < systems.size(); ++s) {
    const std::string prefix = std::to_string(s) + "_";
    sg::NetZone* zone = sg::create_full_zone(prefix);
    zone->set_parent(root);
    std::vector<sg::Link*> links;
    for (size_t l = 0; l < systems[s].capacities.size(); ++l) {
      links.push_back(
          zone->create_link(prefix + "l" + std::to_string(l), rate(systems[s].capacities[l]))
              ->set_latency(0)
              ->seal());
    }
    for (size_t f = 0; f < systems[s].flows.size(); ++f, ++next) {
      const TimedFlow& flow = systems[s].flows[f];
      const std::string name = prefix + std::to_string(f);
      sg::Host* from = zone->create_host(name + "a", 1e9)->seal();
      sg::Host* to = zone->create_host(name + "b", 1e9)->seal();
      std::vector<sg::LinkInRoute> route;
      for (const Crossing& crossing : flow.path) route.emplace_back(links[crossing.link.index()]);
      if (flow.cap < Bandwidth::unlimited()) {  // a link of its own: sendto() knows no rates
        route.emplace_back(zone->create_link(name + "cap", rate(flow.cap))->set_latency(0)->seal());
      }
      zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
      sg::Actor::create(name, from, [&ends, &flow, from, to, next] {
        sg::this_actor::sleep_until(flow.start.seconds());
        send(from, to, flow.volume);
        ends[next] = sg::Engine::get_clock();
      });
    }
    zone->seal();
  }
  root->seal();
  engine->run();
  return ends;
}

namespace {

LaneResult run_lanes(const LaneTraffic& traffic) {
  constexpr size_t kRack = 32;
  const std::unique_ptr<sg::Engine> engine = bare_engine();
  sg::NetZone* zone = sg::create_star_zone("star");
  std::vector<sg::Host*> hosts;
  std::vector<sg::Link*> rack_up, rack_down;
  const auto link = [zone](const std::string& name, Bandwidth bandwidth) {
    return zone->create_link(name, rate(bandwidth))->set_latency(0)->seal();
  };
  for (size_t h = 0; h < traffic.hosts; ++h) {
    const std::string name = std::to_string(h);
    if (h % kRack == 0) {
      rack_up.push_back(link("ru" + name, gigabits_per_second(400) * (kRack / 4)));
      rack_down.push_back(link("rd" + name, gigabits_per_second(400) * (kRack / 4)));
    }
    sg::Host* host = zone->create_host("h" + name, 1e9)->seal();
    sg::Link* up = link("u" + name, gigabits_per_second(400));
    sg::Link* down = link("d" + name, gigabits_per_second(400));
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                    {sg::LinkInRoute(up), sg::LinkInRoute(rack_up.back())}, false);
    zone->add_route(nullptr, host->get_netpoint(), nullptr, nullptr,
                    {sg::LinkInRoute(rack_down.back()), sg::LinkInRoute(down)}, false);
    hosts.push_back(host);
  }
  zone->seal();
  LaneResult result;
  const double begin = traffic.warm_up.seconds(), end = begin + traffic.simulated.seconds();
  for (size_t lane = 0; lane < traffic.lanes; ++lane) {
    sg::Host* from = hosts[lane % traffic.hosts];
    sg::Host* to = hosts[lane_destination(traffic, lane)];
    sg::Actor::create(std::to_string(lane), from, [&result, begin, end, from, to, lane] {
      for (size_t turn = 0; sg::Engine::get_clock() < end; ++turn) {
        send(from, to, lane_volume(lane, turn));
        const double now = sg::Engine::get_clock();
        if (now > begin && now <= end) ++result.ends;
      }
    });
  }
  engine->run_until(begin);
  const std::clock_t ticks = std::clock();
  engine->run_until(end);
  result.cpu_seconds = static_cast<double>(std::clock() - ticks) / CLOCKS_PER_SEC;
  return result;
}

}  // namespace

// In a process of its own, since SimGrid runs once in each.
LaneResult simgrid_lanes(const LaneTraffic& traffic) {
  std::array<int, 2> ends{};
  LaneResult result;
  if (pipe(ends.data()) != 0) return result;
  const pid_t child = fork();
  if (child == 0) {
    result = run_lanes(traffic);
    const bool written = write(ends[1], &result, sizeof(result)) == sizeof(result);
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  if (read(ends[0], &result, sizeof(result)) != sizeof(result)) result = {};
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return result;
}

}  // namespace herdsim
